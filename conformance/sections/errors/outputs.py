"""`Received incompatible devices`, caused by an output that is passed to another program.

An output is committed to its mapped function's devices, and sharded by its `out_axes`: the next
program must accept that, or be redefined.
"""

from __future__ import annotations

from typing import Any

import jax

from conformance.sections.errors import (
    AS_JIT_CLAIM,
    DEVICES_CLAIM,
    FOUR_DEVICES,
    IN_AXES_CLAIM,
    MESSAGE_CLAIM,
    OWN_DEVICES_CLAIM,
    PART_OF_A_PROCESS,
    WITHOUT,
    first_half,
    incompatible,
    refused_as,
    refused_unless_legacy,
    remedied,
    second_half,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import add, double, doubled, psum
from conformance.worker.protocols import Cluster, Implementation

OUT_AXES_FACT = "errors.incompatible-devices.output-axis"
IN_AXES_FACT = "errors.incompatible-devices.fix-in-axes"
OUTSIDE_FACT = "errors.incompatible-devices.outside-any-map"
PASSES_FACT = "errors.incompatible-devices.passes"

DEFAULTS = Defaults(needs=devices(2), topologies=ONE_AND_FOUR)


@described("the first half of the rows, doubled, plus three times themselves")
def half_added(place: Place) -> Any:
    return first_half(place.rows(2)) * 5


@described("this process's rows as columns, doubled")
def transposed(place: Place) -> Any:
    rows = place.rows(place.topology.devices_per_process)
    return rows.T * 2


@described("this process's part of all rows as columns, doubled")
def part_of_transposed(place: Place) -> Any:
    return place.mine(place.all_rows(place.topology.devices).T) * 2


@described("the sum of all rows, whose own rows were doubled")
def total_doubled(place: Place) -> Any:
    return place.all_rows(place.topology.devices_per_process, 2).sum(0) * 2


@described("this process's part of the sum of all rows, doubled")
def part_of_total_doubled(place: Place) -> Any:
    return place.mine(place.all_rows(place.topology.devices, 2).sum(0)) * 2


@described("this process's rows plus the sum of all rows")
def plus_total(place: Place) -> Any:
    return place.rows(2) + place.all_rows(2).sum(0)


@clause(
    "errors.incompatible-devices.output-of-other-order",
    fact="errors.incompatible-devices.other-order",
    claim=OWN_DEVICES_CLAIM,
    needs=devices(2),
    expect=refused_unless_legacy(doubled(2)),
)
def output_of_other_order(impl: Implementation, cluster: Cluster) -> None:
    """The argument is the output of a mapped function over the same devices in reverse order."""
    output = impl.map(lambda x: x, devices=cluster.local_devices[::-1])(cluster.rows(2))
    cluster.twice(impl.map(double()), output)


@clause(
    "errors.incompatible-devices.outputs-of-two-maps",
    fact="errors.incompatible-devices.other-devices",
    claim=DEVICES_CLAIM,
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=refused_unless_legacy(half_added),
)
def outputs_of_two_maps(impl: Implementation, cluster: Cluster) -> None:
    """The outputs of mapped functions over the two halves of the devices are passed to one over one
    half.
    """
    x, y = outputs_of_halves(impl, cluster)
    cluster.twice(impl.map(add(), devices=first_half(cluster.local_devices)), x, y)


@clause(
    "errors.incompatible-devices.outputs-of-two-maps-outside",
    fact=OUTSIDE_FACT,
    claim=MESSAGE_CLAIM,
    cause="results-stay-on-all-devices",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=refused_as(incompatible(r"\[0, 1(, 2, 3)?\]", r"\[(2, 3|4, 5, 6, 7)\]"), half_added),
)
def outputs_of_two_maps_outside(impl: Implementation, cluster: Cluster) -> None:
    """The outputs of mapped functions over the two halves of the devices are added outside any
    mapped function.
    """
    x, y = outputs_of_halves(impl, cluster)
    cluster.twice(jax.numpy.add, x, y)


@DEFAULTS.clause(
    "errors.incompatible-devices.output-and-one-device-added",
    fact=OUTSIDE_FACT,
    claim=MESSAGE_CLAIM,
    cause="results-stay-on-all-devices",
    expect=refused_as(
        incompatible(first=r"\[\d+(, \d+)+\]", second=r"\[\d+\]"), lambda place: place.rows(2) * 3
    ),
)
def output_and_one_device_added(impl: Implementation, cluster: Cluster) -> None:
    """Adding a mapped function's output and an array committed to one device, outside any mapped
    function.
    """
    output = impl.map(double())(impl.given(cluster.rows(2)))
    elsewhere = jax.device_put(impl.rows(cluster, 2), cluster.local_devices[0])
    cluster.twice(jax.numpy.add, output, elsewhere)


@DEFAULTS.clause(
    "errors.incompatible-devices.output-axis-1",
    fact=OUT_AXES_FACT,
    claim=OWN_DEVICES_CLAIM,
    expect=refused_unless_legacy(transposed, part_of_transposed),
)
def output_axis_1(impl: Implementation, cluster: Cluster) -> None:
    """An output with `out_axes=1` is passed to a mapped function with `in_axes=0`."""
    cluster.twice(impl.map(double()), columns(impl, cluster))


@DEFAULTS.clause(
    "errors.incompatible-devices.output-axis-none",
    fact=OUT_AXES_FACT,
    claim=OWN_DEVICES_CLAIM,
    expect=refused_unless_legacy(total_doubled, part_of_total_doubled),
)
def output_axis_none(impl: Implementation, cluster: Cluster) -> None:
    """An output with `out_axes=None` is passed to a mapped function with `in_axes=0`."""
    function = impl.map(psum(), out_axes=None)
    output = function(impl.given(cluster.rows(len(impl.devices), 2)))
    cluster.twice(impl.map(double()), output)


@clause(
    "errors.incompatible-devices.output-fed-back",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=everywhere(returns(lambda place: place.rows(2) * 4)),
)
def output_fed_back(impl: Implementation, cluster: Cluster) -> None:
    """An output is passed back to the mapped function that returned it, and is accepted."""
    function = impl.map(double())
    cluster.twice(function, function(impl.given(cluster.rows(2))))


@clause(
    "errors.incompatible-devices.output-and-uncommitted",
    fact=PASSES_FACT,
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=everywhere(returns(lambda place: place.rows(2) * 3)),
)
def output_and_uncommitted(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function accepts another's output and an uncommitted array."""
    output = impl.map(double())(impl.given(cluster.rows(2)))
    rows = jax.numpy.asarray(impl.rows(cluster, 2))
    cluster.twice(impl.map(add()), output, rows)


@clause(
    "errors.incompatible-devices.output-and-numpy-added",
    fact=PASSES_FACT,
    claim=AS_JIT_CLAIM,
    expect=everywhere(returns(lambda place: place.rows(2) * 3)),
)
def output_and_numpy_added(impl: Implementation, cluster: Cluster) -> None:
    """Adding a mapped function's output and a NumPy array, outside any mapped function, works."""
    output = impl.map(double())(cluster.rows(2))
    cluster.twice(jax.numpy.add, output, cluster.rows(2))


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-in-axes-output-axis-1",
    fact=IN_AXES_FACT,
    claim=IN_AXES_CLAIM,
    fixes="errors.incompatible-devices.output-axis-1",
    expect=everywhere(
        remedied(lambda place: place.rows(place.topology.devices_per_process) * 2, transposed)
    )
    | {
        SHARD_MAP: remedied(
            lambda place: place.rows(place.topology.devices) * 2, part_of_transposed
        )
    },
)
def fix_in_axes_output_axis_1(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes=1` for an output that was made with `out_axes=1`."""
    cluster.step(WITHOUT, impl.map(double()), columns(impl, cluster))
    cluster.twice(impl.map(double(), in_axes=1), columns(impl, cluster))


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-in-axes-output-axis-none",
    fact=IN_AXES_FACT,
    claim=IN_AXES_CLAIM,
    fixes="errors.incompatible-devices.output-axis-none",
    expect=everywhere(remedied(plus_total, total_doubled))
    | {SHARD_MAP: remedied(plus_total, part_of_total_doubled)},
)
def fix_in_axes_output_axis_none(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes=None` for an output that was made with `out_axes=None`."""
    as_mapped = impl.given(cluster.rows(len(impl.devices), 2))
    cluster.step(WITHOUT, impl.map(double()), impl.map(psum(), out_axes=None)(as_mapped))
    rows = impl.given(cluster.rows(2))
    output = impl.map(psum(), out_axes=None)(rows)
    cluster.twice(impl.map(add(), in_axes=(0, None)), rows, output)


def outputs_of_halves(impl: Implementation, cluster: Cluster) -> tuple[Any, Any]:
    """Return the outputs of mapped functions over the first and the second half of the devices."""
    first, second = first_half(cluster.local_devices), second_half(cluster.local_devices)
    rows = first_half(cluster.rows(2))
    x = impl.map(double(), devices=first)(rows)
    return x, impl.map(lambda x: x * 3, devices=second)(rows)


def columns(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output whose columns are the rows, one per device."""
    rows = impl.given(cluster.rows(len(impl.devices)))
    return impl.map(lambda x: x, out_axes=1)(rows)
