"""Global arrays from the full data, from each process's part, and from one array per device.

pmap takes the same three, over its own process's devices. Some of the arrays span two processes
only: then the others run the same lines, and hold no part of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    not_applicable,
    raises,
    returns,
    steps,
)

EVERYWHERE = ("1x8", "2x2", "4x2")

NO_GLOBAL_ARRAY = not_applicable("pmap takes the process's data as they are")


def shard_map_only(expected: Expectation) -> dict[str, Expectation]:
    """pmap has no array that spans processes."""
    return {LEGACY_PMAP: NO_GLOBAL_ARRAY, NEW_PMAP: NO_GLOBAL_ARRAY, SHARD_MAP: expected}


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(2) * 2


# Each takes the rows of all the sharding's devices, this process's of them, and the sharding.
Way = Callable[[Any, Any, Any], Any]


def by_device_put(whole: Any, part: Any, sharding: Any) -> Any:
    """The full data in every process, and `device_put`."""
    return jax.device_put(whole, sharding)


def by_process(whole: Any, part: Any, sharding: Any) -> Any:
    """Each process's part, and `make_array_from_process_local_data`."""
    return jax.make_array_from_process_local_data(sharding, part, whole.shape)


def by_device(whole: Any, part: Any, sharding: Any) -> Any:
    """One array per device, and `make_array_from_single_device_arrays`."""
    here = [d for d in sharding.mesh.devices.flat if d.process_index == jax.process_index()]
    arrays = [jax.device_put(row[None], d) for row, d in zip(part, here, strict=True)]
    return jax.make_array_from_single_device_arrays(whole.shape, sharding, arrays, dtype=part.dtype)


WAYS: dict[str, Way] = {
    "device-put": by_device_put,
    "process-local-data": by_process,
    "single-device-arrays": by_device,
}


def build(impl: Any, cluster: Any, way: str) -> None:
    """The map of an array that was built in one of the three ways."""
    rows, part = impl.rows(cluster, 2), cluster.rows(2)
    function, sharding = impl.map(lambda x: x * 2), impl.sharding()
    for name in ("first call", "second call"):
        array = WAYS[way](rows, part, sharding)
        cluster.step(name, function, array)


for key, one in WAYS.items():
    clause(
        f"inputs.build.{key}",
        claim="multi-process.three-ways-to-build-arrays",
        topologies=EVERYWHERE,
        expect=dict.fromkeys(IMPLEMENTATIONS, returns(doubled)),
        parameters={"way": key},
        title=one.__doc__ or "",
    )(build)


# --- One array per device -------------------------------------------------------------------------

EXAMPLE = "multi-process.single-device-arrays-example"


def numbers(place: Place) -> Any:
    """the numbers of all devices, by process"""
    shape = (place.topology.processes, place.topology.devices_per_process)
    return np.arange(place.topology.devices, dtype=np.int32).reshape(shape)


def own_numbers_doubled(place: Place) -> Any:
    """the numbers of this process's devices, doubled"""
    return numbers(place)[place.process : place.process + 1] * 2


@clause(
    "inputs.single-device-arrays.example",
    claim=EXAMPLE,
    topologies=EVERYWHERE,
    expect=shard_map_only(
        steps(
            gathered=returns(numbers),
            mapped=returns(own_numbers_doubled),
            mapped_again=returns(own_numbers_doubled),
        )
    ),
)
def example(impl: Any, cluster: Any) -> None:
    """One number per device becomes a global array: gathered as in the example, and mapped."""
    shape = (jax.process_count(), jax.local_device_count())
    mesh, spec = jax.make_mesh(shape, ("i", "j")), jax.sharding.PartitionSpec("i", "j")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    local_arrays = [
        jax.device_put(jnp.array([[jax.process_index() * jax.local_device_count() + i]]), device)
        for i, device in enumerate(jax.local_devices())
    ]
    array = jax.make_array_from_single_device_arrays(
        shape=shape, sharding=sharding, arrays=local_arrays
    )
    cluster.step("gathered", lambda: multihost_utils.process_allgather(array, tiled=True))
    function = impl.adopt(
        jax.jit(jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)),
        "jit(shard_map)",
    )
    cluster.step("mapped", function, array)
    cluster.step("mapped again", function, array)


@clause(
    "inputs.single-device-arrays.example-gather",
    claim=EXAMPLE,
    topologies=EVERYWHERE,
    expect=shard_map_only(returns(lambda place: np.True_)),
)
def example_gather(impl: Any, cluster: Any) -> None:
    """The example's own check, with `process_allgather` as it is written."""
    array = by_device(cluster.all_rows(2), cluster.rows(2), impl.sharding())
    output = impl.map(lambda x: x * 2)(array)

    def check() -> Any:
        gathered = multihost_utils.process_allgather(output)
        return np.all(gathered == cluster.all_rows(2) * 2)

    cluster.twice(check)


def pieces(impl: Any, cluster: Any) -> list[Any]:
    """One row on each of this process's devices."""
    rows = cluster.rows(2)
    return [jax.device_put(rows[i : i + 1], d) for i, d in enumerate(cluster.local_devices)]


def assemble(impl: Any, cluster: Any, arrays: list[Any]) -> None:
    """The map of what JAX makes of some single-device arrays, after a control without fault."""
    function = impl.map(lambda x: x * 2)
    shape = (len(impl.devices), 2)

    def run(given: list[Any]) -> Any:
        return function(jax.make_array_from_single_device_arrays(shape, impl.sharding(), given))

    cluster.step("control", run, pieces(impl, cluster))
    cluster.step("first call", run, arrays)
    cluster.step("second call", run, arrays)


CONTROL = returns(doubled, text="what complete arrays give")
INCOMPLETE = raises(ValueError, "device|shape|shard", otherwise=doubled)


@clause(
    "inputs.single-device-arrays.any-order",
    claim=EXAMPLE,
    topologies=EVERYWHERE,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        steps(control=CONTROL, first_call=returns(doubled), second_call=returns(doubled)),
    ),
)
def any_order(impl: Any, cluster: Any) -> None:
    """The arrays are listed in reverse: each belongs where its device is."""
    assemble(impl, cluster, pieces(impl, cluster)[::-1])


@clause(
    "inputs.single-device-arrays.missing",
    claim=EXAMPLE,
    topologies=EVERYWHERE,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        steps(control=CONTROL, first_call=INCOMPLETE, second_call=INCOMPLETE),
    ),
)
def missing(impl: Any, cluster: Any) -> None:
    """One local device has no array."""
    assemble(impl, cluster, pieces(impl, cluster)[:-1])


@clause(
    "inputs.single-device-arrays.other-shape",
    claim=EXAMPLE,
    topologies=EVERYWHERE,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        steps(control=CONTROL, first_call=INCOMPLETE, second_call=INCOMPLETE),
    ),
)
def other_shape(impl: Any, cluster: Any) -> None:
    """Each array is the row without its leading dimension, as pmap's body sees it."""
    rows = cluster.rows(2)
    assemble(
        impl,
        cluster,
        [jax.device_put(r, d) for r, d in zip(rows, cluster.local_devices, strict=True)],
    )


# --- Some of the processes ------------------------------------------------------------------------

TAKING_PART = 2  # processes 0 and 1


def _count(place: Place) -> int:
    return place.topology.devices_per_process if place.process < TAKING_PART else 0


def held(place: Place) -> Any:
    """this process's rows, doubled, or none where it takes no part"""
    return (place.rows(2) * 2)[: _count(place)]


def two_processes(impl: Any, cluster: Any, way: str) -> None:
    """An array over the devices of processes 0 and 1, and a shard_map over these."""
    cluster.step("control", impl.map(lambda x: x * 2), impl.given(cluster.rows(2)))
    count = TAKING_PART * cluster.topology.devices_per_process
    whole, part = cluster.all_rows(2)[:count], cluster.rows(2)[: _count(cluster)]
    devices = [d for p in range(TAKING_PART) for d in jax.local_devices(process_index=p)]
    mesh, spec = impl.mesh("i", devices), jax.sharding.PartitionSpec("i")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    function = impl.map(lambda x: x * 2, devices=devices)

    def run() -> Any:
        array = WAYS[way](whole, part, sharding)
        shards = function(array).addressable_shards
        return np.concatenate([np.zeros((0, 2), np.float32), *(s.data for s in shards)])

    cluster.step("first call", run)
    cluster.step("second call", run)


for key in WAYS:
    clause(
        f"inputs.some-processes.{key}",
        claim="multi-process.arrays-over-some-processes",
        needs=processes(TAKING_PART),
        topologies=("2x2", "4x2"),
        expect=shard_map_only(
            steps(control=CONTROL, first_call=returns(held), second_call=returns(held))
        ),
        parameters={"way": key},
        title=f"An array over two processes, by {key.replace('-', ' ')}, in all processes",
    )(two_processes)
