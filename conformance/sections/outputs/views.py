"""Outputs as arrays: pmap returns a stack with one entry per device, shard_map one logical array.

The data are the same, with two rows on each device, so that a stack and an array differ in shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.outputs import WIDTH, block_map, each_gets, unless_shard_map
from conformance.spec.arrays import dealt_out, returns_array
from conformance.spec.clause import clause, devices
from conformance.spec.columns import Columns, of_pmaps, of_shard_map
from conformance.spec.expectation import every, not_applicable, noted, returns, sharded
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, Place
from conformance.worker.bodies import double
from conformance.worker.kept import keep_maps
from conformance.worker.protocols import Cluster, Implementation

STACK = "migrate-pmap.output-stack-of-pmap"
ONE_ARRAY = "migrate-pmap.output-one-logical-array"

ABOUT_PMAP = "the claim is about pmap's output"
ABOUT_SHARD_MAP = "the claim is about shard_map's output"

ROWS = 2  # of one device


@described("one block for each of this process's devices")
def stack(place: Place) -> Any:
    return place.rows(ROWS, WIDTH) * 2


@described("the devices' blocks, joined to one array")
def joined(place: Place) -> Any:
    return stack(place).reshape(-1, WIDTH)


@described("the blocks of all devices, joined to one array")
def all_joined(place: Place) -> Any:
    return place.all_rows(ROWS, WIDTH).reshape(-1, WIDTH) * 2


def doubled_blocks(impl: Implementation, cluster: Cluster) -> Any:
    """The map's output: two rows of three on each device, doubled."""
    data = cluster.rows(ROWS, WIDTH)
    if impl.is_pmap:
        return impl.map(double())(data)
    rows = jax.make_array_from_process_local_data(impl.sharding(), data.reshape(-1, WIDTH))
    return block_map(impl, double())(rows)


def _is_stack(place: Place, seen: Any) -> bool:
    return bool(seen == {"shape": [place.topology.devices_per_process, ROWS, WIDTH], "array": True})


def _is_one_array(place: Place, seen: Any) -> bool:
    return bool(seen == {"shape": [place.topology.devices * ROWS, WIDTH], "array": True})


@clause(
    "outputs.stack.shape",
    claim=STACK,
    title="pmap returns one entry for each of this process's devices",
    topologies=ONE_AND_SEVERAL,
    expect=of_pmaps(
        every(returns(stack), noted("facts", "a stack of this process's devices", _is_stack)),
        ABOUT_PMAP,
    ),
)
@clause(
    "outputs.one-array.shape",
    claim=ONE_ARRAY,
    title="shard_map returns one array of all devices' rows",
    cause="shard-map-returns-one-array",
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(
        every(
            returns(joined),
            noted("facts", "one array of all rows", _is_one_array),
        ),
        ABOUT_SHARD_MAP,
    ),
)
def two_outputs(impl: Implementation, cluster: Cluster) -> None:
    """The output itself, of two calls."""
    call = keep_maps(impl, lambda kept: doubled_blocks(kept, cluster))
    for name in ("first call", "second call"):
        array = cluster.step(name, call)
        if array is not None:
            cluster.note(
                "facts", {"shape": list(array.shape), "array": isinstance(array, jax.Array)}
            )


# --- From a stack to one array --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    """One way to make one array of pmap's stack, and what it makes of shard_map's one array."""

    key: str
    text: str
    program: Callable[[Any], Any]
    of_one_array: str
    expected: Expectation


@described("all rows in one long row")
def flattened(place: Place) -> Any:
    return all_joined(place).reshape(-1)


@described("this process's part of all rows in one long row")
def own_flattened(place: Place) -> Any:
    return joined(place).reshape(-1)


def _length(place: Place) -> tuple[int, ...]:
    return (place.topology.devices * ROWS * WIDTH,)


LONG_ROW = "it makes one long row"
WHOLE_ROW = returns_array(flattened, _length)
PART_OF_ROW = returns_array(own_flattened, _length)

JOINS: Mapping[str, Join] = table(
    Join("concatenate", "jnp.concatenate(output)", jnp.concatenate, LONG_ROW, PART_OF_ROW),
    Join(
        "concatenate-list",
        "jnp.concatenate([output[i] for i in range(len(output))])",
        lambda x: jnp.concatenate([x[i] for i in range(len(x))]),
        LONG_ROW,
        WHOLE_ROW,
    ),
    Join(
        "reshape",
        "output.reshape(-1, 3)",
        lambda x: x.reshape(-1, WIDTH),
        "it changes nothing",
        returns_array(joined, lambda place: (place.topology.devices * ROWS, WIDTH)),
    ),
)


@family(
    "outputs.stack.{join}",
    join=JOINS,
    claim=STACK,
    title=(
        "`{join.text}` joins the stacked rows of a pmap's output; with shard_map's output, "
        "{join.of_one_array}"
    ),
    fact="outputs.stack.join",
    cause="shard-map-returns-one-array",
    topologies=ONE_AND_FOUR,
    expect=lambda join: unless_shard_map(returns_array(joined), join.expected),
)
def join_stack(impl: Implementation, cluster: Cluster, join: Join) -> None:
    """Join pmap's stack into one array, by code that may remain after a migration to shard_map."""
    cluster.twice(join.program, doubled_blocks(impl, cluster))


# --- Sharding of the output -----------------------------------------------------------------------


def _by_rows(place: Place, sharding: Mapping[str, Any]) -> bool:
    return (
        sharding["type"] == "NamedSharding"
        and sharding["spec"][:1] == ["i"]
        and not any(sharding["spec"][1:])
        and len(sharding["devices"]) == place.topology.devices_per_process
    )


ONE_ENTRY_EACH = noted(
    "shards", "one entry on each device", lambda place, seen: seen == [[1, ROWS, WIDTH]]
)


@clause(
    "outputs.stack.stays-sharded",
    claim="migrate-pmap.out-axes-zero-stays-sharded",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    expect={
        LEGACY_PMAP: every(
            returns(stack),
            ONE_ENTRY_EACH,
            sharded("PmapSharding of the leading dimension", dealt_out),
        ),
        NEW_PMAP: every(
            returns(stack),
            ONE_ENTRY_EACH,
            sharded("NamedSharding along the leading axis", _by_rows),
        ),
        SHARD_MAP: not_applicable(ABOUT_PMAP),
    },
)
def stays_sharded(impl: Implementation, cluster: Cluster) -> None:
    """With the default `out_axes`, a pmap's output is sharded along its leading axis."""
    call = keep_maps(impl, lambda kept: doubled_blocks(kept, cluster))
    for name in ("first call", "second call"):
        array = cluster.step(name, call)
        if array is not None:
            cluster.note("shards", sorted({s.data.shape for s in array.addressable_shards}))


# --- Operations on all of it ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """One global operation, and its model; the result is the same in every process."""

    key: str
    text: str
    program: Callable[[Any], Any]
    model: Callable[[Any], Any]


OPERATIONS: Mapping[str, Operation] = table(
    Operation("mean", "jnp.mean(output)", jnp.mean, np.mean),
    Operation("sum", "jnp.sum(output, 0)", lambda x: jnp.sum(x, 0), lambda x: x.sum(0)),
    Operation("max", "output.max()", lambda x: x.max(), lambda x: x.max()),
    Operation("argmax", "jnp.argmax(output)", jnp.argmax, lambda x: np.int32(np.argmax(x))),
    Operation(
        "gram",
        "output.reshape(-1, 3).T @ output.reshape(-1, 3)",
        lambda x: x.reshape(-1, WIDTH).T @ x.reshape(-1, WIDTH),
        lambda x: x.reshape(-1, WIDTH).T @ x.reshape(-1, WIDTH),
    ),
    Operation(
        "normalised",
        "(output - output.mean()).sum(-1).min()",
        lambda x: (x - x.mean()).sum(-1).min(),
        lambda x: (x - x.mean()).sum(-1).min(),
    ),
)


@dataclass(frozen=True, slots=True)
class Mode:
    """Under jit or not; the document's sentence about each, and where it is run."""

    key: str
    text: str
    jitted: bool
    claim: str
    topologies: tuple[str, ...]


MODES: Mapping[str, Mode] = table(
    Mode("jit", "under jit", True, "migrate-pmap.output-global-operations", ONE_AND_SEVERAL),
    Mode("eager", "without jit", False, ONE_ARRAY, ONE_AND_FOUR),
)


def operated(operation: Operation) -> Columns:
    """Over all processes' rows for shard_map, over this process's for pmap, as ever."""

    @described("the model of this process's stack")
    def of_stack(place: Place) -> Any:
        return operation.model(stack(place))

    @described("the model of all devices' rows")
    def of_all(place: Place) -> Any:
        return operation.model(all_joined(place))

    return each_gets(of_stack, of_all)


@family(
    "outputs.operation.{mode}.{operation}",
    mode=MODES,
    operation=OPERATIONS,
    title="`{operation.text}` of a mapped function's output, {mode.text}",
    fact="outputs.operation.{mode}",
    expect=operated,
)
def operate(impl: Implementation, cluster: Cluster, mode: Mode, operation: Operation) -> None:
    """Run one operation on an output, in every process."""
    program = operation.program
    array = doubled_blocks(impl, cluster)
    cluster.twice(jax.jit(lambda x: program(x)) if mode.jitted else program, array)


@described("one block for each of this process's devices, times three")
def stack_tripled(place: Place) -> Any:
    return stack(place) * 3


@described("this process's devices' blocks, joined to one array, times three")
def joined_tripled(place: Place) -> Any:
    return joined(place) * 3


@clause(
    "outputs.operation.jit.with-numpy",
    claim=ONE_ARRAY,
    topologies=ONE_AND_FOUR,
    expect=unless_shard_map(
        returns_array(stack_tripled),
        returns_array(joined_tripled, lambda place: (place.topology.devices * ROWS, WIDTH)),
    ),
)
def with_numpy(impl: Implementation, cluster: Cluster) -> None:
    """An output and a NumPy array with twice its values are added under jit."""
    array = doubled_blocks(impl, cluster)
    other = stack(cluster) * 2 if impl.is_pmap else all_joined(cluster) * 2
    cluster.twice(jax.jit(lambda x, y: x + y), array, other)
