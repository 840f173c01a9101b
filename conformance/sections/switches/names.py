"""The names that the documents use: that each can be reached, and does what it is used for there.

A name that is missing costs a reader of the documents their first hour.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.family import family, table
from conformance.judging.columns import Columns, of_new_pmap
from conformance.judging.expectation import returns
from conformance.probing.bodies import double, doubled
from conformance.sections.switches import NO_DIFFERENCE

THERE = "switches.names.reachable"
SHORT = "switches.names.short"


@dataclass(frozen=True, slots=True)
class Name:
    """A name as a document writes it, in the module from which it is reached, and its claim."""

    key: str
    module: str
    name: str
    claim: str
    fact: str = THERE


NAMES: Mapping[str, Name] = table(
    Name("shard-map", "jax", "shard_map", "migrate-pmap.rewrite-basic-map"),
    Name(
        "make-array-from-process-local-data",
        "jax",
        "make_array_from_process_local_data",
        "migrate-pmap.fix-stitch-local-data",
    ),
    Name(
        "make-array-from-single-device-arrays",
        "jax",
        "make_array_from_single_device_arrays",
        "multi-process.single-device-arrays-example",
    ),
    Name(
        "tree-map",
        "jax",
        "tree_map",
        "migrate-pmap.unreplicate-is-index-zero",
        fact="switches.names.tree-map",
    ),
    Name(
        "create-mesh",
        "jax",
        "create_mesh",
        "sharded-computation.with-sharding-constraint",
        fact="switches.names.create-mesh",
    ),
    Name("typeof", "jax", "typeof", "multi-process.sharded-matmul-result"),
    Name(
        "with-sharding-constraint",
        "jax.lax",
        "with_sharding_constraint",
        "sharded-computation.with-sharding-constraint",
    ),
    Name("lowered", "jax.stages", "Lowered", "migrate-pmap.lowered-multi-process"),
    Name("jaxruntimeerror", "jax.errors", "JaxRuntimeError", "migrate-pmap.copy-arrays"),
    Name(
        "visualize-array-sharding",
        "jax.debug",
        "visualize_array_sharding",
        "sharded-computation.reduction-partially-replicated",
    ),
    Name("initialize", "jax.distributed", "initialize", "multi-process.launch-explicit-arguments"),
    Name("axistype", "jax.sharding", "AxisType", "multi-process.make-mesh-default-devices"),
    Name(
        "host-local-array-to-global-array",
        "jax.experimental.multihost_utils",
        "host_local_array_to_global_array",
        "migrate-pmap.fix-host-local-global",
    ),
    Name(
        "global-array-to-host-local-array",
        "jax.experimental.multihost_utils",
        "global_array_to_host_local_array",
        "migrate-pmap.fix-host-local-global",
    ),
    Name(
        "sync-global-devices",
        "jax.experimental.multihost_utils",
        "sync_global_devices",
        "migrate-pmap.fix-sync-global-devices",
    ),
    Name(
        "process-allgather",
        "jax.experimental.multihost_utils",
        "process_allgather",
        "multi-process.fix-process-allgather",
    ),
    Name(
        "create-device-mesh",
        "jax.experimental.mesh_utils",
        "create_device_mesh",
        "sharded-computation.with-sharding-constraint",
    ),
)


def yes(question: str) -> Columns:
    """The probe answers a question, and the answer must be yes."""
    answer = returns(lambda place: np.True_, text=f"yes: {question}")
    return of_new_pmap(answer, NO_DIFFERENCE)


@family(
    "switches.names.{name}",
    name=NAMES,
    claim="{name.claim}",
    fact=lambda name: name.fact,
    title="{name.module}.{name.name} can be reached.",
    expect=yes("the name is there, and can be called"),
    selects=True,
)
def reachable(impl: Any, cluster: Any, name: Name) -> None:
    """The name can be reached from the module that the document names."""
    cluster.twice(
        lambda: np.bool_(callable(getattr(importlib.import_module(name.module), name.name)))
    )


ONE = yes("both names are one")


@clause("switches.names.p", claim="migrate-pmap.name-p", fact=SHORT, expect=ONE, selects=True)
def name_p(impl: Any, cluster: Any) -> None:
    """`jax.P` is PartitionSpec."""
    cluster.twice(lambda: np.bool_(jax.P is jax.sharding.PartitionSpec))


@clause(
    "switches.names.named-sharding",
    claim="migrate-pmap.name-named-sharding",
    fact=SHORT,
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
    expect=of_new_pmap(returns(doubled(2), text="the rows, doubled"), NO_DIFFERENCE),
    selects=True,
)
def name_smap(impl: Any, cluster: Any) -> None:
    """`jax.smap` maps over the axis of the mesh in context."""
    rows = cluster.rows(2)

    def call() -> Any:
        function = jax.smap(double(), in_axes=0, out_axes=0, axis_name="i")
        with jax.set_mesh(impl.mesh()):
            return jax.jit(function)(rows)

    cluster.twice(call)


@clause(
    "switches.names.make-mesh",
    claim="migrate-pmap.name-make-mesh",
    needs=devices(2),
    expect=of_new_pmap(
        returns(lambda place: np.int32(place.topology.devices), text="its size"), NO_DIFFERENCE
    ),
    selects=True,
)
def name_make_mesh(impl: Any, cluster: Any) -> None:
    """`jax.make_mesh(shape=..., axis_names=...)` makes a mesh over the devices."""
    count = len(cluster.devices)
    cluster.twice(lambda: np.int32(jax.make_mesh(shape=(count,), axis_names=("i",)).size))
