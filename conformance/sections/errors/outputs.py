"""`Received incompatible devices`, caused by the output of one map that meets another program.

An output is committed to its map's devices, and sharded as its `out_axes` says; whoever feeds it on
has to fit that, or to redefine the map that takes it.
"""

from __future__ import annotations

from typing import Any

import jax

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, Model, raises, returns
from conformance.sections.errors import FOUR_DEVICES, first_half
from conformance.sections.errors import INCOMPATIBLE as MESSAGE

CLAIM = "migrate-pmap.incompatible-devices"
OWN_DEVICES_CLAIM = "migrate-pmap.incompatible-sharding"
MESSAGE_CLAIM = "migrate-pmap.incompatible-devices-message"
AS_JIT_CLAIM = "migrate-pmap.incompatible-devices-as-jit"


def refused_unless_legacy(model: Model, shard_map: Model | None = None) -> dict[str, Expectation]:
    """Legacy resharded in silence; both others refuse."""
    return {
        LEGACY_PMAP: returns(model),
        NEW_PMAP: raises(ValueError, MESSAGE, otherwise=model),
        SHARD_MAP: raises(ValueError, MESSAGE, otherwise=shard_map or model),
    }


def passes(model: Model, shard_map: Model | None = None) -> dict[str, Expectation]:
    """Every implementation returns the model; shard_map's may differ, as its view is global."""
    everywhere: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(model))
    return everywhere | {SHARD_MAP: returns(shard_map or model)}


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(2) * 2


def half_added(place: Place) -> Any:
    """the first half of the rows, doubled, plus three times themselves"""
    return first_half(place.rows(2)) * 5


def transposed(place: Place) -> Any:
    """this process's rows as columns, doubled"""
    rows = place.rows(place.topology.devices_per_process)
    return rows.T * 2


def all_transposed(place: Place) -> Any:
    """this process's part of all rows as columns, doubled"""
    return place.mine(place.all_rows(place.topology.devices).T) * 2


def summed(place: Place) -> Any:
    """the sum of all rows, whose own rows were doubled"""
    return place.all_rows(place.topology.devices_per_process, 2).sum(0) * 2


def mine_summed(place: Place) -> Any:
    """this process's part of the sum of all rows, doubled"""
    return place.mine(place.all_rows(place.topology.devices, 2).sum(0)) * 2


def unmapped_sum(place: Place) -> Any:
    """this process's rows plus the sum of all rows"""
    return place.rows(2) + place.all_rows(2).sum(0)


@clause(
    "errors.incompatible-devices.output-of-other-order",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    expect=refused_unless_legacy(doubled),
)
def output_of_other_order(impl: Any, cluster: Any) -> None:
    """The argument is the output of a map over the same devices in reverse order."""
    output = impl.map(lambda x: x, devices=cluster.local_devices[::-1])(cluster.rows(2))
    cluster.twice(impl.map(lambda x: x * 2), output)


@clause(
    "errors.incompatible-devices.outputs-of-two-maps",
    claim=CLAIM,
    needs=FOUR_DEVICES,
    expect=refused_unless_legacy(half_added),
)
def outputs_of_two_maps(impl: Any, cluster: Any) -> None:
    """The outputs of maps over the two halves of the devices meet in a map over one half."""
    x, y = _outputs(impl, cluster)
    function = impl.map(lambda a, b: a + b, devices=first_half(cluster.local_devices))
    cluster.twice(function, x, y)


@clause(
    "errors.incompatible-devices.outputs-of-two-maps-outside",
    claim=MESSAGE_CLAIM,
    needs=FOUR_DEVICES,
    expect=refused_unless_legacy(half_added),
)
def outputs_of_two_maps_outside(impl: Any, cluster: Any) -> None:
    """The outputs of maps over the two halves of the devices are added outside any map."""
    x, y = _outputs(impl, cluster)
    cluster.twice(jax.numpy.add, x, y)


@clause(
    "errors.incompatible-devices.output-and-one-device-added",
    claim=MESSAGE_CLAIM,
    needs=devices(2),
    expect=refused_unless_legacy(lambda place: place.rows(2) * 3),
)
def output_and_one_device_added(impl: Any, cluster: Any) -> None:
    """A map's output and an array committed to one device are added outside any map."""
    output = impl.map(lambda x: x * 2)(cluster.rows(2))
    elsewhere = jax.device_put(cluster.rows(2), cluster.local_devices[0])
    cluster.twice(jax.numpy.add, output, elsewhere)


@clause(
    "errors.incompatible-devices.output-axis-1",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(transposed, all_transposed),
)
def output_axis_1(impl: Any, cluster: Any) -> None:
    """An output with `out_axes=1` is fed to a map with `in_axes=0`."""
    cluster.twice(impl.map(lambda x: x * 2), _columns(impl, cluster))


@clause(
    "errors.incompatible-devices.output-axis-none",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(summed, mine_summed),
)
def output_axis_none(impl: Any, cluster: Any) -> None:
    """An output with `out_axes=None` is fed to a map with `in_axes=0`."""
    total = impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)
    output = total(impl.given(cluster.rows(len(impl.devices), 2)))
    cluster.twice(impl.map(lambda x: x * 2), output)


@clause(
    "errors.incompatible-devices.output-fed-back",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=passes(lambda place: place.rows(2) * 4),
)
def output_fed_back(impl: Any, cluster: Any) -> None:
    """An output is fed back to the map that made it, and passes."""
    function = impl.map(lambda x: x * 2)
    cluster.twice(function, function(impl.given(cluster.rows(2))))


@clause(
    "errors.incompatible-devices.output-and-uncommitted",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=passes(lambda place: place.rows(2) * 3),
)
def output_and_uncommitted(impl: Any, cluster: Any) -> None:
    """A map takes another map's output and an uncommitted array, and passes."""
    output = impl.map(lambda x: x * 2)(impl.given(cluster.rows(2)))
    rows = jax.numpy.asarray(impl.rows(cluster, 2))
    cluster.twice(impl.map(lambda x, y: x + y), output, rows)


@clause(
    "errors.incompatible-devices.output-and-numpy-added",
    claim=AS_JIT_CLAIM,
    expect=passes(lambda place: place.rows(2) * 3),
)
def output_and_numpy_added(impl: Any, cluster: Any) -> None:
    """A map's output and a NumPy array are added outside any map, and pass."""
    output = impl.map(lambda x: x * 2)(cluster.rows(2))
    cluster.twice(jax.numpy.add, output, cluster.rows(2))


@clause(
    "errors.incompatible-devices.fix-in-axes-output-axis-1",
    claim="migrate-pmap.fix-redefine-in-axes",
    fixes="errors.incompatible-devices.output-axis-1",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=passes(
        lambda place: place.rows(place.topology.devices_per_process) * 2,
        lambda place: place.rows(place.topology.devices) * 2,
    ),
)
def fix_in_axes_output_axis_1(impl: Any, cluster: Any) -> None:
    """`in_axes=1` for an output that was made with `out_axes=1`."""
    cluster.twice(impl.map(lambda x: x * 2, in_axes=1), _columns(impl, cluster))


@clause(
    "errors.incompatible-devices.fix-in-axes-output-axis-none",
    claim="migrate-pmap.fix-redefine-in-axes",
    fixes="errors.incompatible-devices.output-axis-none",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=passes(unmapped_sum),
)
def fix_in_axes_output_axis_none(impl: Any, cluster: Any) -> None:
    """`in_axes=None` for an output that was made with `out_axes=None`."""
    rows = impl.given(cluster.rows(2))
    output = impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)(rows)
    cluster.twice(impl.map(lambda x, y: x + y, in_axes=(0, None)), rows, output)


def _outputs(impl: Any, cluster: Any) -> tuple[Any, Any]:
    first = first_half(cluster.local_devices)
    second = cluster.local_devices[len(first) :]
    rows = first_half(cluster.rows(2))
    x = impl.map(lambda x: x * 2, devices=first)(rows)
    return x, impl.map(lambda x: x * 3, devices=second)(rows)


def _columns(impl: Any, cluster: Any) -> Any:
    """A map's output whose columns are the rows, one per device."""
    rows = impl.given(cluster.rows(len(impl.devices)))
    return impl.map(lambda x: x, out_axes=1)(rows)
