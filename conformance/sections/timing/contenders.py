"""How long an access, a call and a round trip take: the figures beside the clauses on structure.

Each clause races contenders within one process, while the lane alternates implementations and JAX
versions, so that what is compared was measured at the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import Timing, clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import Expectation, Model, returns, steps
from conformance.probing.racing import SHOWN, race
from conformance.sections.indexing.dispatch import LEAVES, PROGRAMS, argument, given

KIB, MIB = 2**10, 2**20
SIZES = {"4kib": 4 * KIB, "64kib": 64 * KIB, "1mib": MIB, "16mib": 16 * MIB}
# Rounds of one block, per contender: as many as take well under a second.
ROUNDS = {"4kib": 20, "64kib": 20, "1mib": 8, "16mib": 3}
CALL_ROUNDS = {"one": 20, "leaves": 5, "psum": 20}
LARGE_ROUNDS = 10
MANY = ("1x1", "1x2", "1x4", "1x8", "1x16", "2x2", "4x2")
SEVERAL = ("2x2", "4x2")
DEADLINE_S = 60.0


def beginning(model: Model, contenders: Sequence[str]) -> dict[str, Expectation]:
    """Every contender returns what begins as the model says, under each implementation."""
    right = returns(model, text="values that begin as the model's")
    every = steps(**{name.replace(" ", "_"): right for name in contenders})
    return dict.fromkeys(IMPLEMENTATIONS, every)


def stack(impl: Any, cluster: Any, size: int) -> Any:
    """A map's output with `size` bytes on each device, its rows numbered from 1."""
    first = cluster.first_row + 1
    count = cluster.topology.devices_per_process
    rows = np.repeat(np.arange(first, first + count, dtype=np.float32), size // 4)
    return impl.map(lambda x: x * 2)(impl.given(rows.reshape(count, size // 4)))


# --- what an index costs -------------------------------------------------------------------------

LOCAL = "local shard"
INDEX = ("index", "index under jit", LOCAL)


def index(impl: Any, cluster: Any, size: str) -> None:
    """`x[0]`, the same under jit, and the first shard that is here anyway."""
    x = stack(impl, cluster, SIZES[size])
    jitted = jax.jit(lambda y: y[0])
    contenders = (
        lambda: x[0],
        lambda: jitted(x),
        lambda: x.addressable_shards[0].data.squeeze(0),
    )
    race(cluster, dict(zip(INDEX, contenders, strict=True)), ROUNDS[size])


def _index_expected(implementation: str) -> Expectation:
    def of(contender: str) -> Expectation:
        def model(place: Place) -> Any:
            # Of a global array the index gives the first row of all, the shard this process's.
            everywhere = implementation == SHARD_MAP and contender != LOCAL
            return np.full(SHOWN, 2 if everywhere else 2 * (place.first_row + 1), np.float32)

        return returns(model, text="the first row's start")

    return steps(**{name.replace(" ", "_"): of(name) for name in INDEX})


for _size in SIZES:
    clause(
        f"timing.index.{_size}",
        claim="migrate-pmap.int-index-moves-whole-array",
        topologies=MANY if _size == "64kib" else ("1x8",),
        parameters={"size": _size},
        title=f"An index into an array of {_size} per device, and its first shard.",
        deadline_s=DEADLINE_S,
        expect={one: _index_expected(one) for one in IMPLEMENTATIONS},
        timing=Timing(
            INDEX,
            (
                "indexing.integer.zero",
                "indexing.integer.jit-zero",
                "indexing.whole.zero",
                "indexing.whole.jit-zero",
                "indexing.whole-of-all-processes.zero",
                "indexing.legacy.zero",
                "indexing.leading.zero-cost",
                "indexing.leading.jit-zero-cost",
                "indexing.addressable-shard.cost",
            ),
            baseline=LOCAL,
        ),
    )(index)


# --- what a call costs ---------------------------------------------------------------------------

CALL = ("call",)
LEVELS = ("top level", "under jit")


def _program_starts(program: str) -> Model:
    def model(place: Place) -> Any:
        if program == "psum":
            return place.all_rows(4).sum(0)
        start = place.rows(4)[0] * 2
        return [start] * LEAVES if program == "leaves" else start

    return model


def call(impl: Any, cluster: Any, program: str) -> None:
    """A call of the map with its own output."""
    x = given(impl, argument(cluster, program))
    mapped = impl.map(PROGRAMS[program][1])
    mapped(x)  # what is timed is JAX's own function, without our witness around it
    race(cluster, {"call": lambda: mapped.function(x)}, CALL_ROUNDS[program])


def levels(impl: Any, cluster: Any, program: str) -> None:
    """A call of the map, and of the same map under jit."""
    x = given(impl, argument(cluster, program))
    body = PROGRAMS[program][1]
    mapped, inner = impl.map(body), impl.map(body)
    mapped(x)
    jitted = jax.jit(inner.function)
    contenders = (lambda: mapped.function(x), lambda: jitted(x))
    race(cluster, dict(zip(LEVELS, contenders, strict=True)), CALL_ROUNDS[program])


for _program, (_text, _) in PROGRAMS.items():
    clause(
        f"timing.dispatch.{_program}",
        claim="pmap-silence.dispatch-cost",
        topologies=("1x8", *SEVERAL),
        parameters={"program": _program},
        title=f"A call with {_text}.",
        deadline_s=DEADLINE_S,
        expect=beginning(_program_starts(_program), CALL),
        timing=Timing(
            CALL,
            (
                f"indexing.dispatch.{_program}",
                "indexing.round-trip.none",
                "indexing.round-trip.fix-shard-map",
            ),
        ),
    )(call)
    clause(
        f"timing.top-level.{_program}",
        claim="migrate-pmap.top-level-faster",
        topologies=("1x8",),
        parameters={"program": _program},
        title=f"A call with {_text} at the top level, and under jit.",
        deadline_s=DEADLINE_S,
        expect=beginning(_program_starts(_program), LEVELS),
        timing=Timing(LEVELS, (f"indexing.top-level.{_program}",), baseline="under jit"),
    )(levels)


def large_call(impl: Any, cluster: Any) -> None:
    """A call of the map with 1 MiB per device, its own output."""
    x = stack(impl, cluster, MIB)
    mapped = impl.map(lambda y: y + 1)
    mapped(x)
    race(cluster, {"call": lambda: mapped.function(x)}, LARGE_ROUNDS)


clause(
    "timing.round-trip.large",
    claim="migrate-pmap.round-trip-conversion",
    needs=processes(2),
    topologies=SEVERAL,
    title="A call with an array of 1 MiB per device.",
    deadline_s=DEADLINE_S,
    expect=beginning(lambda place: np.full(SHOWN, 2 * (place.first_row + 1) + 1, np.float32), CALL),
    timing=Timing(CALL, ("indexing.round-trip.none", "indexing.round-trip.fix-shard-map")),
)(large_call)
