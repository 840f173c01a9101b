"""A donated array that is used again: which error says so, and what works afterwards.

Whatever comes of it, the process must still compute right, with the same wrapper and with a new
one: that is a clause of its own. As a process may not live to do so, each has a fresh cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.family import family, table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_TWO, Place
from conformance.judging.columns import everywhere
from conformance.judging.expectation import Expectation, OfEachStep, every, raises, returns, steps
from conformance.probing.bodies import double, doubled
from conformance.probing.recording import local_rows
from conformance.sections.donation.arrays import own_output
from conformance.sections.donation.kinds import WIDTH, Kind, doubling, kinds

REUSE = "pmap-silence.reuse-after-donation"

DELETED = "deleted or donated|has been deleted|donate the same buffer twice"

RIGHT = returns(doubled(WIDTH))
REFUSED = raises(Exception, DELETED)
DEADLINE_S = 12.0  # a case takes one or two, unless the process hangs

ANYTHING = OfEachStep(
    "whatever happens, as it is judged in a clause of its own",
    lambda place, step: (True, str(step)),
)


# --- In a later call


def donated_array(impl: Any, cluster: Any, kind: Kind) -> Any:
    """The array that a call of this kind donates."""
    return kind.call(impl, cluster, WIDTH).donated[0].array


def after_donation(expected: Expectation) -> Expectation:
    """What is expected after a donating call that works."""
    return every(steps(donating_call=RIGHT), expected)


@family(
    "donation.reuse-same-wrapper.{kind}",
    kind=kinds("own-output", "placed"),
    claim=REUSE,
    title="Donated and passed again through the same wrapper, {kind.said} is refused.",
    fact="donation.reuse",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(after_donation(steps(again=REFUSED))),
)
@family(
    "donation.reuse-same-wrapper.{kind}",
    kind=kinds("uncommitted"),
    claim=REUSE,
    title="Donated and passed again, {kind.said} is refused by the new pmap: it was copied, "
    "then deleted.",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect={
        # Legacy and jit donate the copy that they made, and leave the original.
        LEGACY_PMAP: after_donation(steps(again=RIGHT)),
        NEW_PMAP: after_donation(steps(again=REFUSED)),
        SHARD_MAP: after_donation(steps(again=RIGHT)),
    },
)
def again_in_the_same(impl: Any, cluster: Any, kind: Kind) -> None:
    """The wrapper that it was donated to gets it again."""
    function = doubling(impl)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)


@family(
    "donation.reuse-other-wrapper.{kind}",
    kind=kinds("own-output", "placed"),
    claim=REUSE,
    title="Donated and passed to another map, {kind.said} is refused.",
    fact="donation.reuse",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(after_donation(every(steps(other_wrapper=RIGHT), steps(again=REFUSED)))),
)
def again_in_another(impl: Any, cluster: Any, kind: Kind) -> None:
    """A wrapper that donates nothing, and has worked before, gets it."""
    function, other = doubling(impl), impl.map(double())
    cluster.step("other wrapper", other, own_output(impl, cluster, WIDTH).array)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", other, array)


@family(
    "donation.read.{kind}",
    kind=kinds("own-output", "placed"),
    claim="migrate-pmap.donation-invalidates-input",
    title="Donated, {kind.said} can be read no more.",
    fact="donation.read",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(after_donation(steps(fetch=REFUSED, same_wrapper=RIGHT))),
)
def read(impl: Any, cluster: Any, kind: Kind) -> None:
    """Its values are asked for: this process's rows, and a sum."""
    function = doubling(impl)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("fetch", local_rows, array)
    cluster.step("same wrapper", function, own_output(impl, cluster, WIDTH).array)


@family(
    "donation.after-reuse.{kind}",
    kind=kinds("own-output", "placed"),
    claim=REUSE,
    title="After {kind.said} was donated and passed again, the process computes as before.",
    fact="donation.after-reuse",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(after_donation(steps(again=ANYTHING, same_wrapper=RIGHT, new_wrapper=RIGHT))),
)
def then_others(impl: Any, cluster: Any, kind: Kind) -> None:
    """After it was passed again, other arrays go through the same wrapper and a new one."""
    function = doubling(impl)
    array = donated_array(impl, cluster, kind)
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
    cluster.step("same wrapper", function, own_output(impl, cluster, WIDTH).array)
    cluster.step("new wrapper", doubling(impl), own_output(impl, cluster, WIDTH).array)


# --- In the same call


@dataclass(frozen=True, slots=True)
class Twice:
    """Which of two arguments are donated, where both are the same array."""

    key: str
    donated: tuple[int, ...]
    text: str


TWICE: Mapping[str, Twice] = table(
    Twice("both", (0, 1), "Donated twice in one call"),
    Twice("one", (0,), "Donated as one argument and passed as another"),
)


def sum_and_difference(place: Place) -> Any:
    """this process's rows, doubled, and zeros"""
    rows = place.rows(WIDTH)
    return [rows + rows, rows - rows]


@family(
    "donation.twice-in-one-call.{twice}",
    twice=TWICE,
    claim=REUSE,
    title="{twice.text}, an array is refused.",
    fact="donation.twice-in-one-call",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(
        every(
            steps(
                two_arrays=returns(sum_and_difference),
                one_array_twice=raises(Exception, "donate|deleted"),
            )
        )
    ),
)
def twice_in_one(impl: Any, cluster: Any, twice: Twice) -> None:
    """One array as both arguments of a map, after the map worked with two."""
    function = impl.map(lambda x, y: (x + y, x - y), donate_argnums=twice.donated)
    a, b, both = (own_output(impl, cluster, WIDTH).array for _ in range(3))
    cluster.step("two arrays", function, a, b)
    cluster.step("one array twice", function, both, both)


# --- Over one device


@clause(
    "donation.reuse-same-wrapper.map-over-one-device",
    claim=REUSE,
    fact="donation.reuse",
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=everywhere(
        steps(
            donating_call=returns(lambda place: doubled(WIDTH)(place)[:1], text="its row, doubled"),
            again=REFUSED,
        )
    ),
)
def over_one_device(impl: Any, cluster: Any) -> None:
    """Donated to a map over one device and passed again, an array is refused."""
    there = cluster.local_devices[:1]
    function = impl.map(double(), donate_argnums=(0,), devices=there)
    make = impl.map(lambda x: x * 1, devices=there)
    array = jax.block_until_ready(make(cluster.rows(WIDTH)[:1]))
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
