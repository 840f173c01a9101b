"""The names that the documents use: that each can be reached, and does what it is used for there.

A name that is missing costs a reader of the documents their first hour.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.judging.expectation import Expectation, returns
from conformance.sections.switches.deprecated import only_new


@dataclass(frozen=True, slots=True)
class Name:
    """A name as a document writes it, in the module from which it is reached, and its claim."""

    module: str
    name: str
    claim: str

    @property
    def slug(self) -> str:
        """A part of a clause's id."""
        return self.name.lower().replace("_", "-")


NAMES = (
    Name("jax", "shard_map", "migrate-pmap.rewrite-basic-map"),
    Name("jax", "make_array_from_process_local_data", "migrate-pmap.fix-stitch-local-data"),
    Name(
        "jax", "make_array_from_single_device_arrays", "multi-process.single-device-arrays-example"
    ),
    Name("jax", "tree_map", "migrate-pmap.unreplicate-is-index-zero"),
    Name("jax", "create_mesh", "sharded-computation.with-sharding-constraint"),
    Name("jax", "typeof", "multi-process.sharded-matmul-result"),
    Name("jax.lax", "with_sharding_constraint", "sharded-computation.with-sharding-constraint"),
    Name("jax.stages", "Lowered", "migrate-pmap.lowered-multi-process"),
    Name("jax.errors", "JaxRuntimeError", "migrate-pmap.copy-arrays"),
    Name(
        "jax.debug",
        "visualize_array_sharding",
        "sharded-computation.reduction-partially-replicated",
    ),
    Name("jax.distributed", "initialize", "multi-process.launch-explicit-arguments"),
    Name("jax.sharding", "AxisType", "multi-process.make-mesh-default-devices"),
    Name(
        "jax.experimental.multihost_utils",
        "host_local_array_to_global_array",
        "migrate-pmap.fix-host-local-global",
    ),
    Name(
        "jax.experimental.multihost_utils",
        "global_array_to_host_local_array",
        "migrate-pmap.fix-host-local-global",
    ),
    Name(
        "jax.experimental.multihost_utils",
        "sync_global_devices",
        "migrate-pmap.fix-sync-global-devices",
    ),
    Name(
        "jax.experimental.multihost_utils",
        "process_allgather",
        "multi-process.fix-process-allgather",
    ),
    Name(
        "jax.experimental.mesh_utils",
        "create_device_mesh",
        "sharded-computation.with-sharding-constraint",
    ),
)


def yes(question: str) -> dict[str, Expectation]:
    """The probe answers a question, and the answer must be yes."""
    return only_new(returns(lambda place: np.True_, text=f"yes: {question}"))


def reachable(impl: Any, cluster: Any, module: str, name: str) -> None:
    """The name can be reached from the module that the document names."""
    cluster.twice(lambda: np.bool_(callable(getattr(importlib.import_module(module), name))))


for _name in NAMES:
    clause(
        f"switches.names.{_name.slug}",
        claim=_name.claim,
        expect=yes("the name is there, and can be called"),
        parameters={"module": _name.module, "name": _name.name},
        title=f"{_name.module}.{_name.name} can be reached.",
        selects=True,
    )(reachable)


def doubled(place: Any) -> Any:
    """the rows, doubled"""
    return place.rows(2) * 2


ONE = yes("both names are one")


@clause("switches.names.p", claim="migrate-pmap.name-p", expect=ONE, selects=True)
def name_p(impl: Any, cluster: Any) -> None:
    """`jax.P` is PartitionSpec."""
    cluster.twice(lambda: np.bool_(jax.P is jax.sharding.PartitionSpec))


@clause(
    "switches.names.named-sharding",
    claim="migrate-pmap.name-named-sharding",
    expect=ONE,
    selects=True,
)
def name_named_sharding(impl: Any, cluster: Any) -> None:
    """`jax.NamedSharding` is NamedSharding."""
    cluster.twice(lambda: np.bool_(jax.NamedSharding is jax.sharding.NamedSharding))


@clause(
    "switches.names.single-device-sharding",
    claim="migrate-pmap.name-single-device-sharding",
    expect=ONE,
    selects=True,
)
def name_single_device_sharding(impl: Any, cluster: Any) -> None:
    """`jax.SingleDeviceSharding` is SingleDeviceSharding."""
    cluster.twice(lambda: np.bool_(jax.SingleDeviceSharding is jax.sharding.SingleDeviceSharding))


@clause(
    "switches.names.smap",
    claim="migrate-pmap.name-smap",
    needs=devices(2),
    expect=only_new(returns(doubled)),
    selects=True,
)
def name_smap(impl: Any, cluster: Any) -> None:
    """`jax.smap` maps over the axis of the mesh in context."""
    rows = cluster.rows(2)

    def double() -> Any:
        function = jax.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="i")
        with jax.set_mesh(impl.mesh()):
            return jax.jit(function)(rows)

    cluster.twice(double)


@clause(
    "switches.names.make-mesh",
    claim="migrate-pmap.name-make-mesh",
    needs=devices(2),
    expect=only_new(returns(lambda place: np.int32(place.topology.devices), text="its size")),
    selects=True,
)
def name_make_mesh(impl: Any, cluster: Any) -> None:
    """`jax.make_mesh(shape=..., axis_names=...)` makes a mesh over the devices."""
    count = len(cluster.devices)
    cluster.twice(lambda: np.int32(jax.make_mesh(shape=(count,), axis_names=("i",)).size))
