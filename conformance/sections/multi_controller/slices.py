"""Slices: what is known of which devices are near to each other, and meshes that follow it.

All processes here run on one machine, which is one slice: what the tutorial says of several is seen
with processes in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.mesh_utils import create_hybrid_device_mesh

from conformance.spec.arrays import returns_array, returns_host
from conformance.spec.clause import clause, processes
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, in_steps, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import summed
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 3
MESH = "the mesh"
UNINITIALIZED = "a single process has no slices"


@described("0 for each device")
def one_slice(place: Place) -> Any:
    return np.zeros(place.topology.devices, np.int64)


@clause(
    "multi_controller.slices.index",
    claim="multi-process-2026-08.slice-index-assigned",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    left_out=UNINITIALIZED,
    expect=of_jax(twice(returns_host(one_slice))),
)
def slice_index(impl: Implementation, cluster: Cluster) -> None:
    """After `jax.distributed.initialize`, all devices of one machine have the same slice_index."""
    cluster.twice(lambda: np.array([device.slice_index for device in jax.devices()], np.int64))


def _by_slices() -> Any:
    slices = len({device.slice_index for device in jax.devices()})
    return create_hybrid_device_mesh((1, jax.device_count() // slices), (slices, 1))


def _by_processes() -> Any:
    here = jax.local_device_count()
    return create_hybrid_device_mesh((1, here), (jax.process_count(), 1), process_is_granule=True)


@dataclass(frozen=True, slots=True)
class Made:
    """One way to a mesh of two axes, and how many devices its first axis has."""

    key: str
    text: str
    claim: str
    devices: Callable[[], Any]
    first: Callable[[Place], int]
    topologies: tuple[str, ...] = SEVERAL_PROCESSES

    @described("the devices in their order, cut into the rows of the mesh")
    def order(self, place: Place) -> Any:
        return np.arange(place.topology.devices).reshape(self.first(place), -1)


HYBRID = "hybrid-mesh-over-slices"

MESHES: Mapping[str, Made] = table(
    Made(
        "make-mesh",
        "jax.make_mesh((1, devices), ('dcn', 'ici'))",
        "make-mesh-within-a-slice",
        lambda: jax.make_mesh((1, jax.device_count()), ("dcn", "ici")).devices,
        lambda place: 1,
        ONE_AND_SEVERAL,
    ),
    Made(
        "hybrid",
        "create_hybrid_device_mesh((1, devices_per_slice), (num_slices, 1))",
        HYBRID,
        _by_slices,
        lambda place: 1,
    ),
    Made(
        "hybrid-of-processes",
        "create_hybrid_device_mesh((1, 2), (processes, 1), process_is_granule=True)",
        HYBRID,
        _by_processes,
        lambda place: place.topology.processes,
        ONE_AND_SEVERAL,
    ),
)


def _sum(devices: Any, rows: Any) -> Any:
    """The sum of all rows, which are dealt out over such a mesh."""
    mesh = jax.sharding.Mesh(devices, ("dcn", "ici"))
    spec = jax.sharding.PartitionSpec
    dealt = jax.sharding.NamedSharding(mesh, spec(("dcn", "ici")))
    everywhere = jax.sharding.NamedSharding(mesh, spec())
    array = jax.make_array_from_process_local_data(dealt, rows)
    return jax.jit(lambda x: jnp.sum(x, 0), out_shardings=everywhere)(array)


@family(
    "multi_controller.slices.{made}",
    made=MESHES,
    claim=lambda made: f"multi-process-2026-08.{made.claim}",
    title="The mesh of `{made.text}`: its devices, and a sum over them",
    left_out=lambda made: UNINITIALIZED if made.topologies == SEVERAL_PROCESSES else "",
    expect=lambda made: of_jax(
        every(
            in_steps(returns_host(made.order), MESH),
            twice(returns_array(summed(WIDTH), lambda _: (WIDTH,))),
        )
    ),
)
def mesh_over_slices(impl: Implementation, cluster: Cluster, made: Made) -> None:
    """A mesh that follows the slices, and a sum of one row on each of its devices."""

    def order() -> Any:
        listed = jax.devices()
        return np.vectorize(listed.index)(made.devices())

    cluster.step(MESH, order)
    cluster.twice(lambda: _sum(made.devices(), cluster.rows(WIDTH)))
