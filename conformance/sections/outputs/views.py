"""What a map returns: pmap a stack with one entry per device, shard_map one logical array.

The same data, two rows on each device, so that a stack and an array differ in shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    every,
    not_applicable,
    noted,
    returns,
    sharded,
)

EVERYWHERE = ("1x8", "2x2", "4x2")

ROWS, WIDTH = 2, 3  # of one device

Model = Callable[[Place], Any]


def whole(place: Place) -> Any:
    """All of shard_map's output: the devices' blocks, joined."""
    return place.all_rows(ROWS, WIDTH).reshape(-1, WIDTH) * 2


def stack(place: Place) -> Any:
    """All of pmap's output in this process: one block per device."""
    return place.rows(ROWS, WIDTH) * 2


def output(impl: Any, cluster: Any) -> Any:
    """The map's output: two rows of three on each device, doubled."""
    data = cluster.rows(ROWS, WIDTH)
    if impl.is_pmap:
        return impl.map(lambda x: x * 2)(data)
    sharding = impl.sharding()
    blocks = jax.shard_map(
        lambda x: x * 2, mesh=sharding.mesh, in_specs=sharding.spec, out_specs=sharding.spec
    )
    rows = jax.make_array_from_process_local_data(sharding, data.reshape(-1, WIDTH))
    return impl.adopt(jax.jit(blocks), "jit(shard_map)")(rows)


def two_outputs(impl: Any, cluster: Any) -> None:
    """The output itself, of two calls."""
    for name in ("first call", "second call"):
        array = cluster.step(name, output, impl, cluster)
        cluster.note("facts", {"shape": list(array.shape), "array": isinstance(array, jax.Array)})


def _is_stack(place: Place, seen: Any) -> bool:
    return bool(seen == {"shape": [place.topology.devices_per_process, ROWS, WIDTH], "array": True})


def _is_whole(place: Place, seen: Any) -> bool:
    return bool(seen == {"shape": [place.topology.devices * ROWS, WIDTH], "array": True})


clause(
    "outputs.stack.shape",
    claim="migrate-pmap.output-stack-of-pmap",
    topologies=EVERYWHERE,
    expect={
        **dict.fromkeys(
            (LEGACY_PMAP, NEW_PMAP),
            every(returns(stack), noted("facts", "a stack of this process's devices", _is_stack)),
        ),
        SHARD_MAP: not_applicable("the claim is about pmap's output"),
    },
    title="pmap returns one entry for each of this process's devices",
)(two_outputs)

clause(
    "outputs.one-array.shape",
    claim="migrate-pmap.output-one-logical-array",
    topologies=EVERYWHERE,
    expect={
        LEGACY_PMAP: not_applicable("the claim is about shard_map's output"),
        NEW_PMAP: not_applicable("the claim is about shard_map's output"),
        SHARD_MAP: every(
            returns(lambda place: stack(place).reshape(-1, WIDTH)),
            noted("facts", "one array of all rows", _is_whole),
        ),
    },
    title="shard_map returns one array of all devices' rows",
)(two_outputs)


# --- From a stack to one array --------------------------------------------------------------------


def joined(place: Place) -> Any:
    """the devices' blocks, joined to one array"""
    return stack(place).reshape(-1, WIDTH)


JOINS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "concatenate": ("jnp.concatenate(output)", jnp.concatenate),
    "concatenate-list": (
        "jnp.concatenate([output[i] for i in range(len(output))])",
        lambda x: jnp.concatenate([x[i] for i in range(len(x))]),
    ),
    "reshape": ("output.reshape(-1, 3)", lambda x: x.reshape(-1, WIDTH)),
}


def join(impl: Any, cluster: Any, how: str) -> None:
    """The stack becomes one array; shard_map's output is one as it is."""
    array = output(impl, cluster)
    cluster.twice(JOINS[how][1] if impl.is_pmap else (lambda x: x), array)


for how, (said, _) in JOINS.items():
    clause(
        f"outputs.stack.{how}",
        claim="migrate-pmap.output-stack-of-pmap",
        topologies=("1x8", "4x2"),
        expect=dict.fromkeys(IMPLEMENTATIONS, returns(joined)),
        parameters={"how": how},
        title=f"A pmap's stack is joined by `{said}`, shard_map's output needs nothing",
    )(join)


# --- How the output lies --------------------------------------------------------------------------


def _by_rows(place: Place, sharding: Mapping[str, Any]) -> bool:
    return bool(sharding.get("spec", [])[:1] == ["i"])


@clause(
    "outputs.stack.stays-sharded",
    claim="migrate-pmap.out-axes-zero-stays-sharded",
    needs=devices(2),
    topologies=EVERYWHERE,
    expect={
        LEGACY_PMAP: every(
            returns(stack),
            noted("shards", "one entry on each device", lambda place, seen: seen == _one_each()),
            sharded("PmapSharding", lambda place, s: s["type"] == "PmapSharding"),
        ),
        NEW_PMAP: every(
            returns(stack),
            noted("shards", "one entry on each device", lambda place, seen: seen == _one_each()),
            sharded("NamedSharding along the leading axis", _by_rows),
        ),
        SHARD_MAP: not_applicable("the claim is about pmap's output"),
    },
)
def stays_sharded(impl: Any, cluster: Any) -> None:
    """With the default `out_axes`, a pmap's output is sharded along its leading axis."""
    for name in ("first call", "second call"):
        array = cluster.step(name, output, impl, cluster)
        cluster.note("shards", sorted({s.data.shape for s in array.addressable_shards}))


def _one_each() -> Any:
    return [[1, ROWS, WIDTH]]


# --- Operations on all of it ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """One global operation, and its model; the result is the same in every process."""

    name: str
    said: str
    program: Callable[[Any], Any]
    model: Callable[[Any], Any]


OPERATIONS = {
    one.name: one
    for one in (
        Operation("mean", "jnp.mean(output)", jnp.mean, np.mean),
        Operation("sum", "jnp.sum(output, 0)", lambda x: jnp.sum(x, 0), lambda x: x.sum(0)),
        Operation("max", "output.max()", lambda x: x.max(), lambda x: x.max()),
        Operation(
            "argmax",
            "jnp.argmax(output)",
            jnp.argmax,
            lambda x: np.int32(np.argmax(x)),
        ),
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
}


def operated(name: str) -> dict[str, Expectation]:
    """Over all processes' rows for shard_map, over this process's for pmap, as ever."""
    model = OPERATIONS[name].model

    def own(place: Place) -> Any:
        return model(stack(place))

    def of_all(place: Place) -> Any:
        return model(whole(place))

    own.__doc__ = "the model of this process's stack"
    of_all.__doc__ = "the model of all devices' rows"
    return {LEGACY_PMAP: returns(own), NEW_PMAP: returns(own), SHARD_MAP: returns(of_all)}


def operate(impl: Any, cluster: Any, operation: str, jitted: bool) -> None:
    """One operation on a map's output, which every process runs."""
    program = OPERATIONS[operation].program
    array = output(impl, cluster)
    cluster.twice(jax.jit(lambda x: program(x)) if jitted else program, array)


for one in OPERATIONS.values():
    clause(
        f"outputs.operation.jit.{one.name}",
        claim="migrate-pmap.output-global-operations",
        topologies=EVERYWHERE,
        expect=operated(one.name),
        parameters={"operation": one.name, "jitted": True},
        title=f"`{one.said}` of a map's output, under jit",
    )(operate)
    clause(
        f"outputs.operation.eager.{one.name}",
        claim="migrate-pmap.output-one-logical-array",
        topologies=("1x8", "4x2"),
        expect=operated(one.name),
        parameters={"operation": one.name, "jitted": False},
        title=f"`{one.said}` of a map's output, without jit",
    )(operate)


@clause(
    "outputs.operation.jit.with-numpy",
    claim="migrate-pmap.output-one-logical-array",
    topologies=("1x8", "4x2"),
    expect={
        LEGACY_PMAP: returns(lambda place: stack(place) * 3),
        NEW_PMAP: returns(lambda place: stack(place) * 3),
        SHARD_MAP: returns(lambda place: joined(place) * 3),
    },
)
def with_numpy(impl: Any, cluster: Any) -> None:
    """The output and a NumPy array of twice its values are added under jit."""
    array = output(impl, cluster)
    other = stack(cluster) * 2 if impl.is_pmap else whole(cluster) * 2
    cluster.twice(jax.jit(lambda x, y: x + y), array, other)
