"""`CopyArrays ... same size`: using a map's output in several processes, and the fixes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from conformance.clause import ONE_AND_FOUR, clause, processes
from conformance.expectation import Expectation, raises, returns
from conformance.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.topology import Place

CLAIM = "migrate-pmap.copy-arrays"


def output(impl: Any, cluster: Any) -> Any:
    """The output of a map: one row of three per device."""
    return impl.map(lambda x: x * 2)(impl.given(cluster.rows(3)))


def first_row(place: Place) -> Any:
    """the first row of this process's rows"""
    return (place.rows(3) * 2)[0]


def first_global_row(place: Place) -> Any:
    """the first row of the logical global array"""
    return (place.all_rows(3) * 2)[0]


def refused(legacy: Any, shard_map: Any) -> dict[str, Expectation]:
    """The error that the document describes for the new pmap's output."""
    error = raises("JaxRuntimeError", "CopyArrays .* same size", otherwise=legacy)
    return {LEGACY_PMAP: returns(legacy), NEW_PMAP: error, SHARD_MAP: returns(shard_map)}


def same(model: Any, shard_map: Any = None) -> dict[str, Expectation]:
    """Every implementation returns the model; shard_map's output is the global array."""
    return {
        LEGACY_PMAP: returns(model),
        NEW_PMAP: returns(model),
        SHARD_MAP: returns(shard_map or model),
    }


@clause(
    "errors.copy-arrays.integer-index",
    claim=CLAIM,
    needs=processes(2),
    topologies=("4x2",),
    expect=refused(first_row, first_global_row),
)
def integer_index(impl: Any, cluster: Any) -> None:
    """`x[0]` of a map's output, in several processes."""
    cluster.twice(lambda x: x[0], output(impl, cluster))


@clause(
    "errors.copy-arrays.slice",
    claim=CLAIM,
    needs=processes(2),
    topologies=("4x2",),
    expect=refused(
        lambda place: (place.rows(3) * 2)[:1], lambda place: (place.all_rows(3) * 2)[:1]
    ),
)
def slice_(impl: Any, cluster: Any) -> None:
    """`x[:1]` of a map's output, in several processes."""
    cluster.twice(lambda x: x[:1], output(impl, cluster))


@clause(
    "errors.copy-arrays.traced-index",
    claim=CLAIM,
    needs=processes(2),
    topologies=("4x2",),
    expect=refused(first_row, first_global_row),
)
def traced_index(impl: Any, cluster: Any) -> None:
    """`x[i]` with `i` from `jnp.arange`, in several processes."""
    cluster.twice(lambda x: x[jnp.arange(1)[0]], output(impl, cluster))


@clause(
    "errors.copy-arrays.computation",
    claim=CLAIM,
    needs=processes(2),
    topologies=("4x2",),
    expect=refused(
        lambda place: (place.rows(3) * 2).sum(0), lambda place: (place.all_rows(3) * 2).sum(0)
    ),
)
def computation(impl: Any, cluster: Any) -> None:
    """`jnp.sum(x, 0)` of a map's output, in several processes."""
    cluster.twice(lambda x: jnp.sum(x, 0), output(impl, cluster))


@clause(
    "errors.copy-arrays.one-process",
    claim=CLAIM,
    expect=same(first_row, first_global_row),
)
def one_process(impl: Any, cluster: Any) -> None:
    """`x[0]` of a map's output, in one process, where the error is not to appear."""
    cluster.twice(lambda x: x[0], output(impl, cluster))


@clause(
    "errors.copy-arrays.fix-addressable-shards",
    claim="migrate-pmap.fix-addressable-shards",
    fixes="errors.copy-arrays.integer-index",
    topologies=ONE_AND_FOUR,
    expect=same(lambda place: (place.rows(3) * 2)[:1]),
)
def fix_addressable_shards(impl: Any, cluster: Any) -> None:
    """`x.addressable_shards[0].data` is this process's first row, with its leading dimension."""
    cluster.twice(lambda x: x.addressable_shards[0].data, output(impl, cluster))


@clause(
    "errors.copy-arrays.fix-device-put",
    claim="migrate-pmap.fix-device-put-global",
    fixes="errors.copy-arrays.integer-index",
    topologies=ONE_AND_FOUR,
    expect=same(first_row, first_global_row),
)
def fix_device_put(impl: Any, cluster: Any) -> None:
    """`device_put` of the output, replicated by a NamedSharding over its devices, then `x[0]`."""
    everywhere = impl.sharding(axis=None)
    cluster.twice(lambda x: jax.device_put(x, everywhere)[0], output(impl, cluster))


@clause(
    "errors.copy-arrays.fix-static-range",
    claim="migrate-pmap-later.fix-static-range",
    fixes="errors.copy-arrays.traced-index",
    topologies=ONE_AND_FOUR,
    expect=same(lambda place: list(place.rows(3) * 2), lambda place: list(place.all_rows(3) * 2)),
)
def fix_static_range(impl: Any, cluster: Any) -> None:
    """Every row in turn, by the indices of a Python `range`."""
    cluster.twice(lambda x: [x[i] for i in range(x.shape[0])], output(impl, cluster))
