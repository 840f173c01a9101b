"""Wrong JAX that the clauses on outputs must call wrong: fabricated observations, really judged.

Each is what a clause or an entry once took for right. A right observation goes through first, so
that what is refused is refused for its own sake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fabricated import Cell, check
from records import FIRST, SECOND, leaf, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

StepsOf = Callable[[Place], list[Any]]

ONE, TWO, FOUR = Topology(1, 8), Topology(2, 2), Topology(4, 2)
SINGLE = {"type": "SingleDeviceSharding", "devices": [0]}
HOST = {"type": "ndarray", "sharding": None}
OTHER_DIMENSION = {
    "type": "PmapSharding",
    "spec": "ShardingSpec((NoSharding(), Chunked(8), NoSharding()), (ShardedAxis(axis=0),))",
    "devices": list(range(8)),
}


def both(values: Callable[[Place], Any], **facts: Any) -> StepsOf:
    """The same values in both calls."""
    return lambda place: [
        returned(leaf(values(place), **facts), name=name) for name in (FIRST, SECOND)
    ]


def read(programs: list[Any]) -> StepsOf:
    """The local copy, and what was compiled to read it."""
    names = (FIRST, SECOND, "with empty caches")

    def steps(place: Place) -> list[Any]:
        copy = leaf(place.all_rows(3).sum(0), sharding=SINGLE)
        first, second, compiled = (returned(copy, name=name) for name in names)
        return [first, second, compiled | {"extra": {"programs": programs}}]

    return steps


def own_first(place: Place) -> list[Any]:
    """Both calls return the first of the process's own rows, on its first device."""
    there = SINGLE | {"devices": [2048 * place.process]}
    return both(lambda place: place.rows(3)[0] * 2, sharding=there)(place)


def error(type: str, message: str, phase: str = "unknown") -> StepsOf:
    """Both calls raise."""
    return lambda place: [raised(type, message, name=name, phase=phase) for name in (FIRST, SECOND)]


GATHER = {"operation": "all-gather", "shape": [8, 3], "bytes": 96}

CELLS = {
    "this process's own first": Cell(
        "outputs.unreplicate.flax.rows",
        SHARD_MAP,
        TWO,
        own_first,
        Verdict.KNOWN_DEVIATION,
    ),
    "the local copy is read where it is": Cell(
        "outputs.unreplicate.fix-local-shard",
        NEW_PMAP,
        TWO,
        read([{"name": "squeeze", "collectives": []}]),
        Verdict.CONFORMS,
    ),
    "a bare assertion": Cell(
        "outputs.host.iterate",
        SHARD_MAP,
        TWO,
        error("AssertionError", ""),
        Verdict.KNOWN_DEVIATION,
    ),
    "flax's unreplicate returns garbage": Cell(
        "outputs.unreplicate.flax.rows",
        SHARD_MAP,
        TWO,
        both(lambda place: place.rows(3)[0] * 7, sharding=SINGLE),
    ),
    "and garbage in one process": Cell(
        "outputs.unreplicate.flax.rows",
        NEW_PMAP,
        ONE,
        both(lambda place: place.rows(3)[0] * 7, sharding=SINGLE),
    ),
    "the copy is gathered": Cell(
        "outputs.unreplicate.fix-local-shard",
        NEW_PMAP,
        TWO,
        read([{"name": "squeeze", "collectives": [GATHER]}]),
    ),
    "nothing tells how the copy was read": Cell(
        "outputs.unreplicate.fix-local-shard",
        NEW_PMAP,
        TWO,
        read([]),
    ),
    "an assertion about something else": Cell(
        "outputs.host.iterate",
        SHARD_MAP,
        TWO,
        error("AssertionError", "the device is on fire"),
    ),
    "NumPy ran in place of JAX": Cell(
        "outputs.stack.reshape",
        SHARD_MAP,
        FOUR,
        both(lambda place: place.rows(2, 3).reshape(-1, 3) * 2, shape=[16, 3], **HOST),
    ),
    "what is fetched is on a device still": Cell(
        "outputs.host.asarray",
        NEW_PMAP,
        ONE,
        both(lambda place: place.rows(3) * 2),
    ),
    "any error about arrays elsewhere": Cell(
        "outputs.not-here.asarray",
        SHARD_MAP,
        TWO,
        error("RuntimeError", "spans non-addressable devices", "fetch"),
    ),
    "the stack lies along another dimension": Cell(
        "outputs.replicate.stacks",
        LEGACY_PMAP,
        ONE,
        lambda place: [
            returned(
                leaf(
                    np.tile(np.arange(12, dtype=np.float32).reshape(3, 4), (8, 1, 1)),
                    sharding=OTHER_DIMENSION,
                ),
                name=name,
            )
            for name in ("replicated", "mapped", "mapped again")
        ],
    ),
    "every error of an index is one": Cell(
        "outputs.unreplicate.index.number",
        NEW_PMAP,
        ONE,
        error("IndexError", "list index out of range"),
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_what_jax_does_is_judged_as_it_is(name: str) -> None:
    check(CELLS[name])
