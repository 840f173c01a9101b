"""`Received incompatible devices`: inputs that lie elsewhere than the map expects, and the fixes.

The program is always the same one line, a map that doubles its rows, so that where the input lies
is all that differs between clauses.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, not_applicable, raises, returns

CLAIM = "migrate-pmap.incompatible-devices"
OWN_DEVICES_CLAIM = "migrate-pmap.incompatible-sharding"


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(2) * 2


def plus_one(place: Place) -> Any:
    """this process's rows plus the unmapped argument"""
    return place.rows(2) + np.array([10, 20], np.float32)


def twice_doubled(place: Place) -> Any:
    """this process's rows, doubled, plus themselves"""
    return place.rows(2) * 3


def refused_unless_legacy(model: Any) -> dict[str, Expectation]:
    """Legacy resharded in silence; both others refuse."""
    refused = raises(ValueError, "Received incompatible devices", otherwise=model)
    return {LEGACY_PMAP: returns(model), NEW_PMAP: refused, SHARD_MAP: refused}


def half(place: Place) -> Any:
    """the rows of the first half of the devices, doubled"""
    return place.rows(2)[: place.topology.devices_per_process // 2] * 2


@clause(
    "errors.incompatible-devices.one-device",
    claim=CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(doubled),
)
def one_device(impl: Any, cluster: Any) -> None:
    """The mapped argument is committed to one device."""
    rows = jax.device_put(impl.rows(cluster, 2), cluster.local_devices[0])
    cluster.twice(impl.map(lambda x: x * 2), rows)


@clause(
    "errors.incompatible-devices.fewer-devices",
    claim=CLAIM,
    needs=processes(1, devices_per_process=4),
    expect=refused_unless_legacy(doubled),
)
def fewer_devices(impl: Any, cluster: Any) -> None:
    """The mapped argument is sharded over half of the map's devices."""
    some = cluster.local_devices[: len(cluster.local_devices) // 2]
    sharding = jax.sharding.NamedSharding(impl.mesh("i", some), jax.sharding.PartitionSpec("i"))
    cluster.twice(impl.map(lambda x: x * 2), jax.device_put(cluster.rows(2), sharding))


@clause(
    "errors.incompatible-devices.other-devices",
    claim=CLAIM,
    needs=processes(1, devices_per_process=4),
    expect=refused_unless_legacy(half),
)
def other_devices(impl: Any, cluster: Any) -> None:
    """The map is over the first half of the devices, its argument lies on the second half."""
    count = len(cluster.local_devices) // 2
    first, second = cluster.local_devices[:count], cluster.local_devices[count:]
    sharding = jax.sharding.NamedSharding(impl.mesh("i", second), jax.sharding.PartitionSpec("i"))
    rows = jax.device_put(cluster.rows(2)[:count], sharding)
    cluster.twice(impl.map(lambda x: x * 2, devices=first), rows)


@clause(
    "errors.incompatible-devices.other-order",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    expect=refused_unless_legacy(doubled),
)
def other_order(impl: Any, cluster: Any) -> None:
    """The mapped argument is sharded over the map's devices in reverse order."""
    mesh = impl.mesh("i", cluster.local_devices[::-1])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    cluster.twice(impl.map(lambda x: x * 2), jax.device_put(cluster.rows(2), sharding))


@clause(
    "errors.incompatible-devices.other-spec",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(lambda place: place.rows(8) * 2),
)
def other_spec(impl: Any, cluster: Any) -> None:
    """The mapped argument lies on the map's devices, sharded along its other dimension."""
    sharding = jax.sharding.NamedSharding(
        impl.mesh("i", impl.devices), jax.sharding.PartitionSpec(None, "i")
    )
    cluster.twice(impl.map(lambda x: x * 2), jax.device_put(impl.rows(cluster, 8), sharding))


@clause(
    "errors.incompatible-devices.replicated",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(doubled),
)
def replicated(impl: Any, cluster: Any) -> None:
    """The mapped argument is replicated over the map's devices."""
    cluster.twice(
        impl.map(lambda x: x * 2), jax.device_put(impl.rows(cluster, 2), impl.sharding(axis=None))
    )


@clause(
    "errors.incompatible-devices.unmapped-argument",
    claim=CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(plus_one),
)
def unmapped_argument(impl: Any, cluster: Any) -> None:
    """An unmapped argument (`in_axes=None`) is committed to one device."""
    added = jax.device_put(np.array([10, 20], np.float32), cluster.local_devices[0])
    function = impl.map(lambda x, y: x + y, in_axes=(0, None))
    cluster.twice(function, impl.given(cluster.rows(2)), added)


@clause(
    "errors.incompatible-devices.mixed-with-one-device",
    claim=CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(twice_doubled),
)
def mixed_with_one_device(impl: Any, cluster: Any) -> None:
    """One argument is another map's output, the other is committed to one device."""
    output = impl.map(lambda x: x * 2)(impl.given(cluster.rows(2)))
    elsewhere = jax.device_put(impl.rows(cluster, 2), cluster.local_devices[0])
    cluster.twice(impl.map(lambda x, y: x + y), output, elsewhere)


@clause(
    "errors.incompatible-devices.output-of-other-map",
    claim=CLAIM,
    needs=processes(1, devices_per_process=4),
    expect=refused_unless_legacy(half),
)
def output_of_other_map(impl: Any, cluster: Any) -> None:
    """The argument is the output of a map over other devices."""
    count = len(cluster.local_devices) // 2
    first, second = cluster.local_devices[:count], cluster.local_devices[count:]
    output = impl.map(lambda x: x, devices=second)(cluster.rows(2)[:count])
    cluster.twice(impl.map(lambda x: x * 2, devices=first), output)


@clause(
    "errors.incompatible-devices.outside-any-map",
    claim="migrate-pmap.incompatible-devices-message",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(lambda place: np.False_),
)
def outside_any_map(impl: Any, cluster: Any) -> None:
    """A map's output and an array committed to one device meet in `jnp.allclose` (the example)."""
    output = impl.map(lambda x: x * 2)(impl.given(cluster.rows(2)))
    elsewhere = jax.device_put(np.zeros(output.shape, output.dtype), cluster.local_devices[0])
    cluster.twice(jax.numpy.allclose, elsewhere, output)


FIXED: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(doubled))


def put_as_mapped(impl: Any, cluster: Any, mesh: Any) -> None:
    """The one-device program, its input first put where the map expects it."""
    rows: Any = impl.rows(cluster, 2)
    if cluster.topology.processes == 1 or impl.is_pmap:
        rows = jax.device_put(rows, cluster.local_devices[0])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    cluster.twice(impl.map(lambda x: x * 2), jax.device_put(rows, sharding))


@clause(
    "errors.incompatible-devices.fix-device-put",
    claim="migrate-pmap.fix-device-put-named-sharding",
    fixes="errors.incompatible-devices.one-device",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=FIXED,
)
def fix_device_put(impl: Any, cluster: Any) -> None:
    """`device_put` with a NamedSharding whose mesh comes from `Mesh`."""
    put_as_mapped(impl, cluster, jax.sharding.Mesh(np.array(impl.devices), ("i",)))


@clause(
    "errors.incompatible-devices.fix-device-put-make-mesh",
    claim="migrate-pmap.fix-device-put-named-sharding",
    fixes="errors.incompatible-devices.one-device",
    needs=devices(2),
    expect=FIXED,
)
def fix_device_put_make_mesh(impl: Any, cluster: Any) -> None:
    """`device_put` with a NamedSharding whose mesh comes from `make_mesh`, as written."""
    put_as_mapped(impl, cluster, jax.make_mesh((len(cluster.local_devices),), ("i",)))


@clause(
    "errors.incompatible-devices.fix-in-axes",
    claim="migrate-pmap.fix-redefine-in-axes",
    fixes="errors.incompatible-devices.replicated",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(plus_one)),
)
def fix_in_axes(impl: Any, cluster: Any) -> None:
    """`in_axes=None` for an argument that is replicated over the map's devices."""
    added = jax.device_put(np.array([10, 20], np.float32), impl.sharding(axis=None))
    function = impl.map(lambda x, y: x + y, in_axes=(0, None))
    cluster.twice(function, impl.given(cluster.rows(2)), added)


@clause(
    "errors.incompatible-devices.fix-devices",
    claim="migrate-pmap.fix-redefine-devices",
    fixes="errors.incompatible-devices.other-devices",
    needs=processes(1, devices_per_process=4),
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(half)),
)
def fix_devices(impl: Any, cluster: Any) -> None:
    """`devices=` names the devices on which the argument lies."""
    count = len(cluster.local_devices) // 2
    second = cluster.local_devices[count:]
    sharding = jax.sharding.NamedSharding(impl.mesh("i", second), jax.sharding.PartitionSpec("i"))
    rows = jax.device_put(cluster.rows(2)[:count], sharding)
    cluster.twice(impl.map(lambda x: x * 2, devices=second), rows)


@clause(
    "errors.incompatible-devices.fix-devices-order",
    claim="migrate-pmap.fix-redefine-devices",
    fixes="errors.incompatible-devices.other-order",
    needs=devices(2),
    expect=FIXED,
)
def fix_devices_order(impl: Any, cluster: Any) -> None:
    """`devices=` names the devices in the argument's order."""
    order = cluster.local_devices[::-1]
    sharding = jax.sharding.NamedSharding(impl.mesh("i", order), jax.sharding.PartitionSpec("i"))
    rows = jax.device_put(cluster.rows(2), sharding)
    cluster.twice(impl.map(lambda x: x * 2, devices=order), rows)


@clause(
    "errors.incompatible-devices.fix-backend",
    claim="migrate-pmap.fix-redefine-backend",
    fixes="errors.incompatible-devices.one-device",
    needs=devices(2),
    expect={
        LEGACY_PMAP: returns(doubled),
        NEW_PMAP: returns(doubled),
        SHARD_MAP: not_applicable("shard_map takes a mesh, and no backend"),
    },
)
def fix_backend(impl: Any, cluster: Any) -> None:
    """`backend=` names the platform on which the (correctly sharded) argument lies."""
    rows = jax.device_put(cluster.rows(2), impl.sharding())
    platform = cluster.local_devices[0].platform
    cluster.twice(impl.map(lambda x: x * 2, backend=platform), rows)
