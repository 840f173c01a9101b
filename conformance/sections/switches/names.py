"""The names that the documents use: that each can be reached, and does what it is used for there.

A name that is missing costs a reader of the documents their first hour. Names that other sections'
probes call are not here: were one gone, those would tell.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import along, every, noted, returns, sharded, steps, twice
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

SHORT = "switches.names.short"
A_NAME = "the result does not depend on the number of processes"

DEFAULTS = Defaults(needs=devices(2), topologies=ONE_AND_FOUR)


def true(question: str) -> Any:
    """The probe answers a question, and the answer must be yes."""
    return returns(lambda place: np.True_, text=f"yes: {question}")


def answered(question: str) -> Any:
    """The same at both calls."""
    return of_jax(twice(true(question)))


ONE = answered("both names are one")


@clause("switches.names.p", claim="migrate-pmap.name-p", fact=SHORT, left_out=A_NAME, expect=ONE)
def name_p(impl: Implementation, cluster: Cluster) -> None:
    """`jax.P` is PartitionSpec."""
    cluster.twice(lambda: np.bool_(jax.P is jax.sharding.PartitionSpec))


@clause(
    "switches.names.named-sharding",
    claim="migrate-pmap.name-named-sharding",
    fact=SHORT,
    left_out=A_NAME,
    expect=ONE,
)
def name_named_sharding(impl: Implementation, cluster: Cluster) -> None:
    """`jax.NamedSharding` is NamedSharding."""
    cluster.twice(lambda: np.bool_(jax.NamedSharding is jax.sharding.NamedSharding))


@clause(
    "switches.names.single-device-sharding",
    claim="migrate-pmap.name-single-device-sharding",
    left_out=A_NAME,
    expect=ONE,
)
def name_single_device_sharding(impl: Implementation, cluster: Cluster) -> None:
    """`jax.SingleDeviceSharding` is SingleDeviceSharding."""
    cluster.twice(lambda: np.bool_(jax.SingleDeviceSharding is jax.sharding.SingleDeviceSharding))


@clause(
    "switches.names.tree-map",
    claim="migrate-pmap.unreplicate-is-index-zero",
    left_out=A_NAME,
    expect=of_jax(twice(returns(lambda place: place.rows(2)[0], text="the first row"))),
)
def name_tree_map(impl: Implementation, cluster: Cluster) -> None:
    """`jax.tree_map(lambda x: x[0], tree)`, which the document gives as the equivalent of flax's
    unreplicate.
    """
    tree = {"rows": cluster.rows(2)}
    cluster.twice(lambda: jax.tree_map(lambda x: x[0], tree))


@clause(
    "switches.names.create-mesh",
    claim="sharded-computation.with-sharding-constraint",
    needs=devices(8),
    left_out=A_NAME,
    expect=of_jax(twice(returns(lambda place: np.int32(8), text="its size"))),
)
def name_create_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`jax.create_mesh((8,), 'x')` returns a mesh of eight devices."""
    cluster.twice(lambda: np.int32(jax.create_mesh((8,), "x").size))


@clause(
    "switches.names.jaxruntimeerror",
    claim="migrate-pmap.copy-arrays",
    left_out=A_NAME,
    expect=answered("it is caught, and says what the runtime could not do"),
)
def name_jax_runtime_error(impl: Implementation, cluster: Cluster) -> None:
    """`except jax.errors.JaxRuntimeError` catches errors of the runtime, here out of memory."""
    petabyte = 2**50

    def refused() -> Any:
        try:
            jax.block_until_ready(jax.jit(lambda: jax.numpy.zeros(petabyte, "uint8"))())
        except jax.errors.JaxRuntimeError as error:
            return np.bool_(str(error).startswith("RESOURCE_EXHAUSTED: Out of memory"))
        return np.False_

    cluster.twice(refused)


@clause(
    "switches.names.lowered",
    claim="migrate-pmap.lowered-multi-process",
    needs=devices(2),
    left_out="errors.lowered tests several processes",
    expect=everywhere(
        steps(
            lowered=true("it is a jax.stages.Lowered"),
            first_call=returns(doubled(2)),
            second_call=returns(doubled(2)),
        )
    ),
)
def name_lowered(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function's `lower` returns a `jax.stages.Lowered`."""
    function, rows = impl.map(double()), impl.rows(cluster, 2)
    lowered = lambda: np.bool_(isinstance(function.lower(rows), jax.stages.Lowered))  # noqa: E731
    cluster.step("lowered", lowered)
    cluster.twice(function, rows)


@DEFAULTS.clause(
    "switches.names.smap", claim="migrate-pmap.name-smap", expect=of_jax(twice(returns(doubled(2))))
)
def name_smap(impl: Implementation, cluster: Cluster) -> None:
    """`jax.smap` maps over the axis of the mesh in context."""
    rows = cluster.all_rows(2)

    def call() -> Any:
        function = jax.smap(double(), in_axes=0, out_axes=0, axis_name="i")
        with jax.set_mesh(impl.mesh()):
            return jax.jit(function)(rows)

    cluster.twice(call)


# --- Meshes and clusters, as the documents make them


@described("one number per process: how many of its devices there are")
def counts(place: Place) -> Any:
    topology = place.topology
    return np.full(topology.processes, topology.devices_per_process)


def of_processes(some: Any) -> Any:
    """Return the number of these devices in each process."""
    return np.bincount([device.process_index for device in some], minlength=jax.process_count())


@DEFAULTS.clause(
    "switches.names.make-mesh",
    claim="migrate-pmap.name-make-mesh",
    expect=of_jax(twice(returns(counts))),
)
def name_make_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`jax.make_mesh(shape=..., axis_names=...)` makes a mesh over the devices."""
    shape = (len(cluster.devices),)
    cluster.twice(lambda: of_processes(jax.make_mesh(shape=shape, axis_names=("i",)).devices.flat))


MESH = "mesh"


@DEFAULTS.clause(
    "switches.names.axistype",
    claim="multi-process.make-mesh-default-devices",
    expect=of_jax(
        twice(
            every(
                returns(counts),
                noted(
                    MESH,
                    "each of jax.devices() once, on an axis of the type that was asked for",
                    lambda _, seen: seen == {"all": True, "axes": ["Explicit"]},
                ),
            )
        )
    ),
)
def mesh_of_all(impl: Implementation, cluster: Cluster) -> None:
    """`jax.make_mesh` accepts the devices of all processes, and
    `jax.sharding.AxisType.Explicit`.
    """
    shape, explicit = (jax.device_count(),), (jax.sharding.AxisType.Explicit,)
    for step in ("first call", "second call"):
        made: list[Any] = []

        def make(made: list[Any] = made) -> Any:
            made.append(jax.make_mesh(shape, ("a",), axis_types=explicit))
            return of_processes(made[0].devices.flat)

        cluster.step(step, make)
        mesh = made[0]
        everyone = sorted(device.id for device in jax.devices())
        found = sorted(device.id for device in mesh.devices.flat)
        axes = [axis.name for axis in mesh.axis_types]
        cluster.note(MESH, {"all": found == everyone, "axes": axes})


@described(
    "process index, devices of all processes, devices of its own, and which of all those are"
)
def who(place: Place) -> Any:
    topology = place.topology
    own = place.first_row + np.arange(topology.devices_per_process)
    return np.array([place.process, topology.devices, topology.devices_per_process, *own])


JOINED = "joined with"


@clause(
    "switches.names.initialize",
    claim="multi-process.launch-explicit-arguments",
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(
        twice(
            every(
                returns(who),
                noted(
                    JOINED,
                    "the cluster was joined with its address, its size and this process's number",
                    lambda place, seen: (
                        seen
                        == {"address": True, "of": place.topology.processes, "as": place.process}
                    ),
                ),
            )
        )
    ),
)
def initialized(impl: Implementation, cluster: Cluster) -> None:
    """After `jax.distributed.initialize`, each process sees all devices and which are local."""
    from jax._src.distributed import global_state  # what the worker joined with, kept by JAX alone

    def seen() -> Any:
        everyone = [device.id for device in jax.devices()]
        own = [everyone.index(device.id) for device in jax.local_devices()]
        return np.array([jax.process_index(), jax.device_count(), jax.local_device_count(), *own])

    for step in ("first call", "second call"):
        cluster.step(step, seen)
        address, joined = global_state.coordinator_address, global_state.num_processes
        there = {"address": bool(address), "of": joined, "as": global_state.process_id}
        cluster.note(JOINED, there)


INNER = 4
COLUMNS = 8


def factors(place: Place) -> tuple[Any, Any]:
    """Whole numbers, so that every sum is exact in whichever order."""
    left = np.arange(1, 1 + place.topology.devices * INNER, dtype=np.float32).reshape(-1, INNER)
    return left, np.arange(1, 1 + INNER * COLUMNS, dtype=np.float32).reshape(INNER, COLUMNS)


@described("this process's rows of the product")
def product(place: Place) -> Any:
    left, right = factors(place)
    return place.mine(left @ right)


@DEFAULTS.clause(
    "switches.names.sharded-matmul",
    claim="multi-process.sharded-matmul-result",
    needs=devices(4),
    expect=of_jax(
        twice(
            every(returns(product), sharded("with the spec P('a', None)", along("a", None))),
        )
    ),
)
def sharded_matmul(impl: Implementation, cluster: Cluster) -> None:
    """The tutorial's distributed product as written: a mesh of two axes, `jax.nn.relu(x @ y)`."""
    left, right = factors(cluster)
    p = jax.sharding.PartitionSpec

    def multiply() -> Any:
        mesh = jax.make_mesh((jax.device_count() // 2, 2), ("a", "b"))
        x = jax.device_put(left, jax.sharding.NamedSharding(mesh, p("a", "b")))
        y = jax.device_put(right, jax.sharding.NamedSharding(mesh, p("b", None)))
        return jax.nn.relu(x @ y)

    cluster.twice(multiply)
