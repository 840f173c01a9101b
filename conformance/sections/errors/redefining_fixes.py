"""Redefining the mapped function, as the fix for `Received incompatible devices`.

`in_axes=`, `devices=` and `backend=` help if the argument's devices serve as well.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.errors import (
    FOUR_DEVICES,
    IN_AXES_CLAIM,
    PART_OF_A_PROCESS,
    WHERE,
    WIDTH,
    WITHOUT,
    first_half,
    half_doubled,
    on_mesh,
    plus_addend,
    remedied,
    second_half,
    times,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import add, addend, double, doubled
from conformance.worker.protocols import Cluster, Implementation

BACKEND = "migrate-pmap.fix-redefine-backend"
NO_BACKEND = "shard_map takes a mesh, and no backend"

# One finding for each option, whatever argument it must match.
BY_BACKEND = "errors.incompatible-devices.fix-backend"

DEFAULTS = Defaults(
    claim="migrate-pmap.fix-redefine-devices",
    needs=devices(2),
    fact="errors.incompatible-devices.fix-devices",
)


@clause(
    "errors.incompatible-devices.fix-in-axes",
    claim=IN_AXES_CLAIM,
    fixes="errors.incompatible-devices.replicated",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=everywhere(remedied(plus_addend(2))),
)
def fix_in_axes(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes=None` for an argument that is replicated over the mapped function's devices."""
    stacked = np.stack([addend(2)] * len(impl.devices))
    as_mapped = jax.device_put(stacked, impl.sharding(axis=None))
    cluster.step(WITHOUT, impl.map(add()), impl.given(cluster.rows(2)), as_mapped)
    fitting = jax.device_put(addend(2), impl.sharding(axis=None))
    function = impl.map(add(), in_axes=(0, None))
    cluster.twice(function, impl.given(cluster.rows(2)), fitting)


@described("this process's first row, doubled")
def one_row_doubled(place: Place) -> Any:
    return place.rows(WIDTH)[:1] * 2


@described("all rows, doubled, as the map over their columns returns them")
def columns_doubled(place: Place) -> Any:
    return place.rows(WIDTH) * 2


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-in-axes-other-spec",
    claim=IN_AXES_CLAIM,
    fact="errors.incompatible-devices.fix-in-axes",
    fixes="errors.incompatible-devices.other-spec",
    expect=everywhere(remedied(columns_doubled)),
)
def fix_in_axes_other_spec(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes=1` for an argument that is sharded along its other dimension."""
    columns = WHERE["other-spec"].put(impl, cluster.rows(len(impl.devices)))
    cluster.step(WITHOUT, impl.map(double()), columns)
    cluster.twice(impl.map(double(), in_axes=1, out_axes=1), columns)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-devices",
    fixes="errors.incompatible-devices.other-devices",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=everywhere(remedied(half_doubled)),
)
def fix_devices(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` names the argument's devices."""
    second = second_half(cluster.local_devices)
    rows = on_mesh(first_half(cluster.rows(2)), impl.mesh("i", second), "i")
    cluster.step(WITHOUT, impl.map(double(), devices=first_half(cluster.local_devices)), rows)
    cluster.twice(impl.map(double(), devices=second), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-devices-order",
    fixes="errors.incompatible-devices.other-order",
    expect=everywhere(remedied(doubled(2))),
)
def fix_devices_order(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` names the devices in the argument's order."""
    order = cluster.local_devices[::-1]
    rows = on_mesh(cluster.rows(2), impl.mesh("i", order), "i")
    cluster.step(WITHOUT, impl.map(double()), rows)
    cluster.twice(impl.map(double(), devices=order), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-devices-one-device",
    fixes="errors.incompatible-devices.one-device",
    expect=everywhere(remedied(one_row_doubled)),
)
def fix_devices_one_device(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` names the one device of the (one-row) argument."""
    chosen = cluster.local_devices[1:2]
    row = jax.device_put(cluster.rows(WIDTH)[:1], chosen[0])
    cluster.step(WITHOUT, impl.map(double(), devices=cluster.local_devices[:1]), row)
    cluster.twice(impl.map(double(), devices=chosen), row)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-devices-output-of-other-map",
    fixes="errors.incompatible-devices.output-of-other-map",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=everywhere(remedied(times(4, WHERE["other-devices"]))),
)
def fix_devices_output_of_other_map(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` names the devices of the mapped function whose output is the argument."""
    second = second_half(cluster.local_devices)
    output = impl.map(double(), devices=second)(first_half(cluster.rows(WIDTH)))
    cluster.step(WITHOUT, impl.map(double(), devices=first_half(cluster.local_devices)), output)
    cluster.twice(impl.map(double(), devices=second), output)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-devices-output-of-other-order",
    fixes="errors.incompatible-devices.output-of-other-order",
    expect=everywhere(remedied(times(4, WHERE["one-device"]))),
)
def fix_devices_output_of_other_order(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` names the devices in the order of the mapped function whose output is the
    argument.
    """
    order = cluster.local_devices[::-1]
    output = impl.map(double(), devices=order)(cluster.rows(WIDTH))
    cluster.step(WITHOUT, impl.map(double()), output)
    cluster.twice(impl.map(double(), devices=order), output)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-backend",
    claim=BACKEND,
    fact=BY_BACKEND,
    fixes="errors.incompatible-devices.one-device",
    expect=of_pmaps(remedied(doubled(2)), NO_BACKEND),
)
def fix_backend(impl: Implementation, cluster: Cluster) -> None:
    """`backend=` names the platform of the device to which the argument is committed."""
    first = cluster.local_devices[0]
    rows = jax.device_put(cluster.rows(2), first)
    cluster.step(WITHOUT, impl.map(double()), rows)
    cluster.twice(impl.map(double(), backend=first.platform), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-backend-one-device",
    claim=BACKEND,
    fact=BY_BACKEND,
    fixes="errors.incompatible-devices.one-device",
    expect=of_pmaps(remedied(one_row_doubled), NO_BACKEND),
)
def fix_backend_one_device(impl: Implementation, cluster: Cluster) -> None:
    """`backend=` names the platform of the second device, which holds the (one-row) argument."""
    second = cluster.local_devices[1]
    row = jax.device_put(cluster.rows(WIDTH)[:1], second)
    cluster.step(WITHOUT, impl.map(double()), row)
    cluster.twice(impl.map(double(), backend=second.platform), row)
