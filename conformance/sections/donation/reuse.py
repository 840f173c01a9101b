"""A donated array that is used again: which error says so, and what works afterwards.

Whatever comes of it, the process must still compute right, with the same wrapper and with a new
one: that is a clause of its own. As a process may not live to do so, each has a fresh cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import Expectation, OfEachStep, every, raises, returns, steps
from conformance.probing.recording import local_rows
from conformance.sections.donation.arrays import Make, own_output, put, uncommitted
from conformance.sections.donation.kinds import KINDS, ONE_AND_TWO, WIDTH, doubled, doubling

REUSE = "pmap-silence.reuse-after-donation"
INVALID = "migrate-pmap.donation-invalidates-input"

DELETED = "deleted or donated|has been deleted|donate the same buffer twice"


def rows_doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return doubled(place, WIDTH)


RIGHT = returns(rows_doubled)
REFUSED = raises(Exception, DELETED)
DEADLINE_S = 12.0  # a case takes one or two, unless the process hangs

ANYTHING = OfEachStep(
    "whatever happens, as it is judged in a clause of its own",
    lambda place, step: (True, str(step)),
)


# --- In a later call

MADE: dict[str, tuple[str, Make]] = {
    "own-output": (KINDS["own-output"].said, own_output),
    "placed": (KINDS["placed"].said, put("i")),
    "uncommitted": (KINDS["uncommitted"].said, uncommitted),
}


def again_in_the_same(impl: Any, cluster: Any, kind: str) -> None:
    """The wrapper that it was donated to gets it again."""
    function = doubling(impl)
    array = MADE[kind][1](impl, cluster, WIDTH).array
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)


def again_in_another(impl: Any, cluster: Any, kind: str) -> None:
    """A wrapper that donates nothing, and has worked before, gets it."""
    function, other = doubling(impl), impl.map(lambda x: x * 2)
    cluster.step("other wrapper", other, own_output(impl, cluster, WIDTH).array)
    array = MADE[kind][1](impl, cluster, WIDTH).array
    cluster.step("donating call", function, array)
    cluster.step("again", other, array)


def then_others(impl: Any, cluster: Any, kind: str) -> None:
    """After it was passed again, other arrays go through the same wrapper and a new one."""
    function = doubling(impl)
    array = MADE[kind][1](impl, cluster, WIDTH).array
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
    cluster.step("same wrapper", function, own_output(impl, cluster, WIDTH).array)
    cluster.step("new wrapper", doubling(impl), own_output(impl, cluster, WIDTH).array)


def read(impl: Any, cluster: Any, kind: str) -> None:
    """Its values are asked for: this process's rows, and a sum."""
    function = doubling(impl)
    array = MADE[kind][1](impl, cluster, WIDTH).array
    cluster.step("donating call", function, array)
    cluster.step("fetch", local_rows, array)
    cluster.step("same wrapper", function, own_output(impl, cluster, WIDTH).array)


def _later(
    way: str, probe: Callable[..., None], kind: str, title: str, expect: dict[str, Expectation]
) -> None:
    clause(
        f"donation.{way}.{kind}",
        claim=INVALID if way == "read" else REUSE,
        needs=devices(2),
        topologies=ONE_AND_TWO,
        parameters={"kind": kind},
        fresh=True,
        deadline_s=DEADLINE_S,
        title=title.format(MADE[kind][0]),
        expect={name: every(steps(donating_call=RIGHT), one) for name, one in expect.items()},
    )(probe)


_AGAIN, _WORKS = steps(again=REFUSED), steps(again=RIGHT)
for _kind in ("own-output", "placed"):
    _later(
        "reuse-same-wrapper",
        again_in_the_same,
        _kind,
        "Donated and passed again through the same wrapper, {} is refused.",
        dict.fromkeys(IMPLEMENTATIONS, _AGAIN),
    )
    _later(
        "reuse-other-wrapper",
        again_in_another,
        _kind,
        "Donated and passed to another map, {} is refused.",
        dict.fromkeys(IMPLEMENTATIONS, every(steps(other_wrapper=RIGHT), _AGAIN)),
    )
    _later(
        "read",
        read,
        _kind,
        "Donated, {} can be read no more.",
        dict.fromkeys(IMPLEMENTATIONS, steps(fetch=REFUSED, same_wrapper=RIGHT)),
    )
    _later(
        "after-reuse",
        then_others,
        _kind,
        "After {} was donated and passed again, the process computes as before.",
        dict.fromkeys(
            IMPLEMENTATIONS, steps(again=ANYTHING, same_wrapper=RIGHT, new_wrapper=RIGHT)
        ),
    )
_later(
    "reuse-same-wrapper",
    again_in_the_same,
    "uncommitted",
    "Donated and passed again, {} is refused by the new pmap: it was copied, then deleted.",
    # Legacy and jit donate the copy that they made, and leave the original.
    {LEGACY_PMAP: _WORKS, NEW_PMAP: _AGAIN, SHARD_MAP: _WORKS},
)


# --- In the same call


def twice_in_one(impl: Any, cluster: Any, donated: list[int]) -> None:
    """One array as both arguments of a map, after the map worked with two."""
    function = impl.map(lambda x, y: (x + y, x - y), donate_argnums=tuple(donated))
    a, b, both = (own_output(impl, cluster, WIDTH).array for _ in range(3))
    cluster.step("two arrays", function, a, b)
    cluster.step("one array twice", function, both, both)


def sum_and_difference(place: Place) -> Any:
    """this process's rows, doubled, and zeros"""
    return [rows_doubled(place), np.zeros_like(rows_doubled(place))]


for _name, _donated, _text in (
    ("both", [0, 1], "Donated twice in one call, an array is refused."),
    ("one", [0], "Donated as one argument and passed as another, an array is refused."),
):
    clause(
        f"donation.twice-in-one-call.{_name}",
        claim=REUSE,
        needs=devices(2),
        topologies=ONE_AND_TWO,
        parameters={"donated": _donated},
        fresh=True,
        deadline_s=DEADLINE_S,
        title=_text,
        expect=dict.fromkeys(
            IMPLEMENTATIONS,
            every(
                steps(
                    two_arrays=returns(sum_and_difference),
                    one_array_twice=raises(Exception, "donate|deleted"),
                )
            ),
        ),
    )(twice_in_one)


# --- Over one device


@clause(
    "donation.reuse-same-wrapper.map-over-one-device",
    claim=REUSE,
    fresh=True,
    deadline_s=DEADLINE_S,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        steps(
            donating_call=returns(lambda place: rows_doubled(place)[:1], text="its row, doubled"),
            again=REFUSED,
        ),
    ),
)
def over_one_device(impl: Any, cluster: Any) -> None:
    """Donated to a map over one device and passed again, an array is refused."""
    there = cluster.local_devices[:1]
    function = impl.map(lambda x: x * 2, donate_argnums=(0,), devices=there)
    make = impl.map(lambda x: x * 1, devices=there)
    array = jax.block_until_ready(make(cluster.rows(WIDTH)[:1]))
    cluster.step("donating call", function, array)
    cluster.step("again", function, array)
