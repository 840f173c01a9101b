"""Reuse of a donated array: the error that it gives, and what works afterwards.

After the error the process must still compute right values, with the same wrapper and with a new
one: each is its own clause. Each has a fresh cluster, because a process may not survive. Arrays for
a later step are made before the donation, so that what hangs is a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax

from conformance.sections.donation.arrays import own_output
from conformance.sections.donation.kinds import OF_TWO, WIDTH, Kind, doubling, kinds
from conformance.spec.aspects import OUTCOME
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.combining import any_of
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, ONE_AND_TWO, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows

REUSE = "pmap-silence.reuse-after-donation"

RIGHT = returns(doubled(WIDTH))
DEADLINE_S = 6.0  # on a loaded machine a case takes up to 1.5 s, unless the process hangs

DEFAULTS = Defaults(claim=REUSE, needs=devices(2), fresh=True, deadline_s=DEADLINE_S)


# JAX or its runtime names the deleted array; which of them raises first depends on the version.
GONE = raises(
    RuntimeError, r"^Array has been deleted with shape=float32\[", otherwise=doubled(WIDTH)
)
REFUSED = replace(
    any_of(
        raises(
            RuntimeError,
            r"^Array has been deleted with shape=float32\[",
            phase="arguments",
            otherwise=doubled(WIDTH),
        ),
        raises(RuntimeError, r"called on deleted or donated buffer", phase="arguments"),
        raises(
            ValueError, r"[Bb]uffer has been deleted or donated"
        ),  # by the fast path, of no frame
    ),
    claims=OUTCOME,
)


# --- In a later call


def donated_array(impl: Implementation, cluster: Cluster, kind: Kind) -> Any:
    """The array that a call of this kind donates."""
    return kind.call(impl, cluster, WIDTH).donated[0].array


def after_donation(expected: Expectation) -> Expectation:
    """Expect `expected` after a donating call that returns the right values."""
    return every(steps(donating_call=RIGHT), expected)


@DEFAULTS.family(
    "donation.reuse-same-wrapper.{kind}",
    kind=kinds("own-output", "placed"),
    title="A donated argument is refused when it is passed to the same wrapper again: {kind.said}.",
    fact="donation.reuse",
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(after_donation(steps(again=REFUSED))),
)
@DEFAULTS.family(
    "donation.reuse-same-wrapper.{kind}",
    kind=kinds("uncommitted"),
    title=(
        "New pmap copies and deletes a donated argument, and refuses it when it is passed "
        "again; legacy pmap and shard_map accept it: {kind.said}."
    ),
    topologies=ONE_AND_SEVERAL,
    cause="donated-copy-original-deleted",
    expect={
        # Legacy and jit donate the copy that they made, and leave the original.
        LEGACY_PMAP: after_donation(steps(again=RIGHT)),
        NEW_PMAP: after_donation(steps(again=REFUSED)),
        SHARD_MAP: after_donation(steps(again=RIGHT)),
    },
)
def again_in_the_same(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """The wrapper that it was donated to gets it again."""
    function = doubling(impl)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)


@DEFAULTS.family(
    "donation.reuse-new-wrapper.{kind}",
    kind=kinds("own-output", "placed"),
    title=(
        "A donated argument is refused by another mapped function that has not run yet: "
        "{kind.said}."
    ),
    fact="donation.reuse",
    topologies=ONE_AND_TWO,
    left_out=OF_TWO,
    expect=everywhere(after_donation(steps(again=REFUSED))),
)
def again_in_a_new_one(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """A wrapper that donates nothing, and that nothing was compiled for, gets it."""
    function, other = doubling(impl), impl.map(double())
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", other, array)


@DEFAULTS.family(
    "donation.reuse-other-wrapper.{kind}",
    kind=kinds("own-output", "placed"),
    title=(
        "A donated argument is refused by another mapped function that has run before: {kind.said}."
    ),
    fact="donation.reuse",
    topologies=ONE_AND_TWO,
    left_out=OF_TWO,
    expect=everywhere(after_donation(every(steps(other_wrapper=RIGHT), steps(again=REFUSED)))),
)
def again_in_another(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """A wrapper that donates nothing, and has worked before, gets it."""
    function, other = doubling(impl), impl.map(double())
    cluster.step("other wrapper", other, own_output(impl, cluster, WIDTH).array)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", other, array)


@DEFAULTS.family(
    "donation.read.{kind}",
    kind=kinds("own-output", "placed"),
    claim="migrate-pmap.donation-invalidates-input",
    title="A donated argument can no longer be read: {kind.said}.",
    fact="donation.read",
    topologies=ONE_AND_TWO,
    left_out=OF_TWO,
    expect=everywhere(after_donation(steps(fetch=GONE, same_wrapper=RIGHT))),
)
def read(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """Read the donated array's values, then pass another array to the same wrapper."""
    function = doubling(impl)
    array, other = donated_array(impl, cluster, kind), own_output(impl, cluster, WIDTH).array
    cluster.step("donating call", function, array)
    cluster.step("fetch", local_rows, array)
    cluster.step("same wrapper", function, other)


@DEFAULTS.family(
    "donation.after-reuse.{kind}",
    kind=kinds("own-output", "placed"),
    title=(
        "After a donated argument was passed again and refused, the process computes as "
        "before: {kind.said}."
    ),
    fact="donation.after-reuse",
    topologies=ONE_AND_TWO,
    left_out=OF_TWO,
    expect=everywhere(after_donation(steps(again=REFUSED, same_wrapper=RIGHT, new_wrapper=RIGHT))),
)
def then_others(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """After it was passed again, other arrays go through the same wrapper and a new one."""
    function = doubling(impl)
    array = donated_array(impl, cluster, kind)
    first, second = (own_output(impl, cluster, WIDTH).array for _ in range(2))
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
    cluster.step("same wrapper", function, first)
    cluster.step("new wrapper", doubling(impl), second)


# --- In the same call


@dataclass(frozen=True, slots=True)
class Twice:
    """Which of two arguments are donated, where both are one array, and the runtime's message."""

    key: str
    donated: tuple[int, ...]
    text: str
    message: str


TWICE: Mapping[str, Twice] = table(
    Twice(
        "both",
        (0, 1),
        "donated twice in one call",
        r"Attempt to donate the same buffer twice in Execute\(\)",
    ),
    Twice(
        "one",
        (0,),
        "donated as one argument and passed as another",
        r"Attempt to use a buffer that was previously donated in the same call to Execute\(\)",
    ),
)


@described("this process's rows, doubled, and zeros")
def sum_and_difference(place: Place) -> Any:
    rows = place.rows(WIDTH)
    return rows + rows, rows - rows


@described("what the map gives for one array as both arguments")
def twice_the_rows(place: Place) -> Any:
    rows = place.rows(WIDTH)
    return rows * 2, rows * 0


@DEFAULTS.family(
    "donation.twice-in-one-call.{twice}",
    twice=TWICE,
    title="An array is refused that is {twice.text}.",
    fact="donation.twice-in-one-call",
    topologies=ONE_AND_TWO,
    left_out=OF_TWO,
    expect=lambda twice: everywhere(
        steps(
            two_arrays=returns(sum_and_difference),
            one_array_twice=raises(ValueError, twice.message, otherwise=twice_the_rows),
        )
    ),
)
def twice_in_one(impl: Implementation, cluster: Cluster, twice: Twice) -> None:
    """Pass one array as both arguments, after the mapped function worked with two arrays."""
    function = impl.map(lambda x, y: (x + y, x - y), donate_argnums=twice.donated)
    a, b, both = (own_output(impl, cluster, WIDTH).array for _ in range(3))
    cluster.step("two arrays", function, a, b)
    cluster.step("one array twice", function, both, both)


# --- Over one device


@clause(
    "donation.reuse-same-wrapper.map-over-one-device",
    claim=REUSE,
    fact="donation.reuse",
    left_out="the result does not depend on the number of processes",
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(
        steps(
            donating_call=returns(lambda place: doubled(WIDTH)(place)[:1], text="its row, doubled"),
            again=REFUSED,
        )
    ),
)
def over_one_device(impl: Implementation, cluster: Cluster) -> None:
    """An array that was donated to a mapped function over one device is refused when it is passed
    again.
    """
    there = cluster.local_devices[:1]
    function = impl.map(double(), donate_argnums=(0,), devices=there)
    make = impl.map(lambda x: x * 1, devices=there)
    array = jax.block_until_ready(make(cluster.rows(WIDTH)[:1]))
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
