"""The time of an access, a call and a conversion: figures beside the clauses on structure.

Each clause races contenders within one process, while the time lane alternates implementations and
JAX versions, so that contenders are measured at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.timing import DEADLINE_S
from conformance.spec.clause import Timing, clause, processes
from conformance.spec.columns import Columns, everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import ONE_AND_SEVERAL, ONE_PROCESS, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.dispatched import PROGRAMS, Program
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.racing import SHOWN, race, witnessed

KIB, MIB = 2**10, 2**20
FLOAT_BYTES = 4
MANY = ("1x1", "1x2", "1x4", "1x8", "1x16", "2x2", "4x2")


@dataclass(frozen=True, slots=True)
class Size:
    """The bytes on each device, and the rounds of one block: as take well under a second."""

    key: str
    bytes: int
    rounds: int


SIZES: Mapping[str, Size] = table(
    Size("4kib", 4 * KIB, 20),
    Size("64kib", 64 * KIB, 20),
    Size("1mib", MIB, 8),
    Size("16mib", 16 * MIB, 3),
)


def written(size: int) -> str:
    """A number of bytes with its unit: `16 MiB`."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def named(contenders: Sequence[str], of: Mapping[str, Expectation]) -> Expectation:
    """Expect this of each contender's step."""
    return steps(**{name.replace(" ", "_"): of[name] for name in contenders})


def beginning(model: Model, contenders: Sequence[str]) -> Columns:
    """Every contender returns what begins as the model says, under each implementation."""
    right = returns(model, text="values that begin as the model's")
    return everywhere(named(contenders, dict.fromkeys(contenders, right)))


def large(impl: Implementation, cluster: Cluster, size: int) -> Any:
    """A map's output with `size` bytes on each device, its rows numbered from 1."""
    first = cluster.first_row + 1
    count, width = cluster.topology.devices_per_process, size // FLOAT_BYTES
    rows = np.repeat(np.arange(first, first + count, dtype=np.float32), width)
    return impl.map(double())(impl.given(rows.reshape(count, width)))


# --- what an index costs -------------------------------------------------------------------------

LOCAL = "local shard"
INDEX = ("index", "index under jit", LOCAL)


def _own_row(place: Place) -> Any:
    return np.full(SHOWN, 2 * (place.first_row + 1), np.float32)


def _first_row_of_all(place: Place) -> Any:
    return np.full(SHOWN, 2, np.float32)


def first_row(model: Model) -> Expectation:
    """Expect the first row from every index; the shard is this process's, with its first row."""
    indexed, shard = (returns(one, text="the first row's start") for one in (model, _own_row))
    return named(INDEX, {"index": indexed, "index under jit": indexed, LOCAL: shard})


@family(
    "timing.index.{size}",
    size=SIZES,
    claim="migrate-pmap.int-index-moves-whole-array",
    title=lambda size: (
        f"The time of indexing an array of {written(size.bytes)} per device, and of reading its "
        "first shard."
    ),
    fact="timing.index",
    topologies=lambda size: MANY if size.key == "64kib" else ONE_PROCESS,
    deadline_s=DEADLINE_S,
    expect={
        LEGACY_PMAP: first_row(_own_row),
        NEW_PMAP: first_row(_own_row),
        SHARD_MAP: first_row(_first_row_of_all),
    },
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
)
def index(impl: Implementation, cluster: Cluster, size: Size) -> None:
    """`x[0]`, the same under jit, and the first shard that is here anyway."""
    x = large(impl, cluster, size.bytes)
    jitted = jax.jit(lambda y: y[0])
    contenders = (
        lambda: x[0],
        lambda: jitted(x),
        lambda: x.addressable_shards[0].data.squeeze(0),
    )
    race(cluster, dict(zip(INDEX, contenders, strict=True)), size.rounds)


# --- what a call costs ---------------------------------------------------------------------------

CALL = ("call",)
LEVELS = ("top level", "under jit")
CALL_ROUNDS = {"one": 20, "leaves": 5, "psum": 20}  # of one block, per contender
LARGE_ROUNDS = 10


def first_rows(program: Program) -> Model:
    """The first row of each leaf of the result."""

    def model(place: Place) -> Any:
        result = program.model(place)
        if not program.tree:
            return result[0]
        return {f"{i:03}": leaf[0] for i, leaf in enumerate(result)}

    return model


@family(
    "timing.dispatch.{program}",
    program=PROGRAMS,
    claim="pmap-silence.dispatch-cost",
    title="The time of a call with {program.text}.",
    fact="timing.dispatch",
    topologies=ONE_AND_SEVERAL,
    deadline_s=DEADLINE_S,
    expect=lambda program: beginning(first_rows(program), CALL),
    timing=lambda program: Timing(
        CALL,
        (
            f"indexing.dispatch.{program.key}",
            "indexing.round-trip.none",
            "indexing.round-trip.fix-shard-map",
        ),
    ),
)
def call(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Time a call of the mapped function with its own output."""
    x = program.argument(impl, cluster)
    mapped = witnessed(impl.map(program.body()), x)
    race(cluster, {"call": lambda: mapped(x)}, CALL_ROUNDS[program.key])


@family(
    "timing.top-level.{program}",
    program=PROGRAMS,
    claim="migrate-pmap.top-level-faster",
    title="The time of a call with {program.text} at the top level, and under jit.",
    fact="timing.top-level",
    deadline_s=DEADLINE_S,
    expect=lambda program: beginning(first_rows(program), LEVELS),
    timing=lambda program: Timing(
        LEVELS, (f"indexing.top-level.{program.key}",), baseline="under jit"
    ),
)
def levels(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Time a call of the mapped function, and of the same one under jit."""
    x = program.argument(impl, cluster)
    mapped, inner = witnessed(impl.map(program.body()), x), impl.map(program.body())
    jitted = jax.jit(inner.function)
    contenders = (lambda: mapped(x), lambda: jitted(x))
    race(cluster, dict(zip(LEVELS, contenders, strict=True)), CALL_ROUNDS[program.key])


@clause(
    "timing.round-trip.large",
    claim="migrate-pmap.round-trip-conversion",
    title="The time of a call with an array of 1 MiB per device.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=DEADLINE_S,
    expect=beginning(lambda place: np.full(SHOWN, 2 * (place.first_row + 1) + 1, np.float32), CALL),
    timing=Timing(CALL, ("indexing.round-trip.none", "indexing.round-trip.fix-shard-map")),
)
def large_call(impl: Implementation, cluster: Cluster) -> None:
    """Time a call of the mapped function with 1 MiB per device, its own output."""
    x = large(impl, cluster, MIB)
    mapped = witnessed(impl.map(lambda y: y + 1), x)
    race(cluster, {"call": lambda: mapped(x)}, LARGE_ROUNDS)
