"""`Received incompatible devices`: arguments whose devices or sharding the mapped function does not
expect.

The program is nearly always the same, a mapped function that doubles its rows: only the argument's
placement differs between clauses.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.errors import (
    DEVICES_CLAIM,
    FOUR_DEVICES,
    MESSAGE_CLAIM,
    OWN_DEVICES_CLAIM,
    PART_OF_A_PROCESS,
    first_half,
    half_doubled,
    incompatible,
    on_mesh,
    plus_addend,
    refused_as,
    refused_unless_legacy,
    second_half,
)
from conformance.spec.clause import devices
from conformance.spec.defaults import Defaults
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import add, addend, double, doubled
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(claim=DEVICES_CLAIM, needs=devices(2), cause="argument-elsewhere-refused")


@described("this process's rows, doubled, plus themselves")
def tripled(place: Place) -> Any:
    return place.rows(2) * 3


@DEFAULTS.clause(
    "errors.incompatible-devices.one-device",
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(doubled(2)),
)
def one_device(impl: Implementation, cluster: Cluster) -> None:
    """The mapped argument is committed to one device."""
    rows = jax.device_put(impl.rows(cluster, 2), cluster.local_devices[0])
    cluster.twice(impl.map(double()), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.fewer-devices",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=refused_unless_legacy(doubled(2)),
)
def fewer_devices(impl: Implementation, cluster: Cluster) -> None:
    """The mapped argument is sharded over half of the mapped function's devices."""
    mesh = impl.mesh("i", first_half(cluster.local_devices))
    cluster.twice(impl.map(double()), on_mesh(cluster.rows(2), mesh, "i"))


@DEFAULTS.clause(
    "errors.incompatible-devices.other-devices",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=refused_unless_legacy(half_doubled),
)
def other_devices(impl: Implementation, cluster: Cluster) -> None:
    """The mapped function uses the first half of the devices, its argument is on the second
    half.
    """
    mesh = impl.mesh("i", second_half(cluster.local_devices))
    rows = on_mesh(first_half(cluster.rows(2)), mesh, "i")
    cluster.twice(impl.map(double(), devices=first_half(cluster.local_devices)), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.other-order",
    claim=OWN_DEVICES_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(doubled(2)),
)
def other_order(impl: Implementation, cluster: Cluster) -> None:
    """The mapped argument is sharded over the mapped function's devices in reverse order."""
    mesh = impl.mesh("i", impl.devices[::-1])
    cluster.twice(impl.map(double()), on_mesh(impl.rows(cluster, 2), mesh, "i"))


@DEFAULTS.clause(
    "errors.incompatible-devices.other-spec",
    claim=OWN_DEVICES_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(lambda place: place.rows(8) * 2),
)
def other_spec(impl: Implementation, cluster: Cluster) -> None:
    """The mapped argument is on the mapped function's devices, sharded along its other
    dimension.
    """
    mesh = impl.mesh("i", impl.devices)
    cluster.twice(impl.map(double()), on_mesh(impl.rows(cluster, 8), mesh, None, "i"))


@DEFAULTS.clause(
    "errors.incompatible-devices.replicated",
    claim=OWN_DEVICES_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(doubled(2)),
)
def replicated(impl: Implementation, cluster: Cluster) -> None:
    """The mapped argument is replicated over the mapped function's devices."""
    rows = jax.device_put(impl.rows(cluster, 2), impl.sharding(axis=None))
    cluster.twice(impl.map(double()), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.unmapped-argument",
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(plus_addend(2)),
)
def unmapped_argument(impl: Implementation, cluster: Cluster) -> None:
    """An unmapped argument (`in_axes=None`) is committed to one device."""
    elsewhere = jax.device_put(addend(2), cluster.local_devices[0])
    function = impl.map(add(), in_axes=(0, None))
    cluster.twice(function, impl.given(cluster.rows(2)), elsewhere)


@DEFAULTS.clause(
    "errors.incompatible-devices.mixed-with-one-device",
    fact="errors.incompatible-devices.one-device",
    topologies=ONE_AND_FOUR,
    expect=refused_unless_legacy(tripled),
)
def mixed_with_one_device(impl: Implementation, cluster: Cluster) -> None:
    """One argument is the output of another mapped function, the other is committed to one
    device.
    """
    output = impl.map(double())(impl.given(cluster.rows(2)))
    elsewhere = jax.device_put(impl.rows(cluster, 2), cluster.local_devices[0])
    cluster.twice(impl.map(add()), output, elsewhere)


@DEFAULTS.clause(
    "errors.incompatible-devices.output-of-other-map",
    fact="errors.incompatible-devices.other-devices",
    needs=FOUR_DEVICES,
    left_out=PART_OF_A_PROCESS,
    expect=refused_unless_legacy(half_doubled),
)
def output_of_other_map(impl: Implementation, cluster: Cluster) -> None:
    """The argument is the output of a mapped function over other devices."""
    elsewhere = impl.map(lambda x: x, devices=second_half(cluster.local_devices))
    output = elsewhere(first_half(cluster.rows(2)))
    cluster.twice(impl.map(double(), devices=first_half(cluster.local_devices)), output)


@DEFAULTS.clause(
    "errors.incompatible-devices.outside-any-map",
    claim=MESSAGE_CLAIM,
    cause="results-stay-on-all-devices",
    topologies=ONE_AND_FOUR,
    expect=refused_as(
        incompatible(first=r"\[\d+\]", second=r"\[\d+(, \d+)+\]"), lambda place: np.False_
    ),
)
def outside_any_map(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function's output and an array committed to one device are compared by
    `jnp.allclose` (the document's example).
    """
    output = impl.map(double())(impl.given(cluster.rows(2)))
    elsewhere = jax.device_put(np.zeros(output.shape, output.dtype), cluster.local_devices[0])
    cluster.twice(jax.numpy.allclose, elsewhere, output)
