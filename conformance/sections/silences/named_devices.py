"""Devices that a program names: in a body, where legacy pmap ignores them, and as `devices=`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.answers import CONTROLLED, WIDTH, control, doubled
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns, twice
from conformance.spec.family import table
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

LEFT_OUT = "one process decides this alone; multi_controller tests several"


@dataclass(frozen=True, slots=True)
class Body:
    """A body that doubles its row and names one of these devices."""

    key: str
    text: str
    make: Callable[[list[jax.Device]], Callable[[Any], Any]]


BODIES: Mapping[str, Body] = table(
    Body("jit-device", "jax.jit(f, device=...)", lambda all: jax.jit(double(), device=all[1])),
    Body(
        "jit-backend",
        "jax.jit(f, backend=...)",
        lambda all: jax.jit(double(), backend=all[0].platform),
    ),
    Body("device-put", "jax.device_put(x, device)", lambda all: lambda x: put(x, all[1]) * 2),
    Body("zeros", "jnp.zeros(n, device=...)", lambda all: lambda x: x * 2 + zeros(device=all[1])),
    Body(
        "default-device",
        "`with jax.default_device(device)`",
        lambda all: lambda x: under_default(all[1], x),
    ),
)


def put(x: Any, device: jax.Device) -> Any:
    return jax.device_put(x, device)


def zeros(device: jax.Device) -> Any:
    return jnp.zeros(WIDTH, jnp.float32, device=device)


def under_default(device: jax.Device, x: Any) -> Any:
    with jax.default_device(device):
        return x * 2 + jnp.zeros(WIDTH, jnp.float32)


IN_BODIES = Defaults(
    claim="pmap-silence.devices-in-bodies",
    needs=devices(2),
    left_out=LEFT_OUT,
    expect=everywhere(twice(returns(doubled))),
)


@IN_BODIES.family(
    "silences.named-devices.{body}",
    body=BODIES,
    title="A mapped body names a device: {body.text}.",
    fact="silences.named-devices",
)
def in_body(impl: Implementation, cluster: Cluster, body: Body) -> None:
    """A map whose body names the second device, or the platform."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of jit's device= and backend=
        function = impl.map(body.make(cluster.devices))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


@IN_BODIES.clause(
    "silences.named-devices.jit",
    title="A mapped body calls a jitted function, without device= and backend=.",
    fixes="silences.named-devices.jit-device",
)
def plain_jit(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body calls a jit that names no device."""
    cluster.twice(impl.map(jax.jit(double())), impl.given(cluster.rows(WIDTH)))


AS_OPTION = Defaults(
    claim="pmap-silence.devices-subset",
    needs=devices(2),
    left_out=LEFT_OUT,
    expect=of_pmaps(
        every(CONTROLLED, in_steps(returns(doubled), *TWICE)),
        "shard_map has a mesh in place of devices=",
    ),
)


@AS_OPTION.clause(
    "silences.named-devices.array",
    title="A mapped function accepts a NumPy array of devices, such as mesh.devices.ravel().",
)
def array_of_devices(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` is a one-dimensional NumPy array."""
    map_and_call_twice(impl, cluster, np.array(cluster.local_devices))


@AS_OPTION.clause(
    "silences.named-devices.list",
    title="A mapped function accepts a list of the devices in a NumPy array.",
    fixes="silences.named-devices.array",
)
def list_of_devices(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` is the array's `tolist()`."""
    map_and_call_twice(impl, cluster, np.array(cluster.local_devices).tolist())


def map_and_call_twice(impl: Implementation, cluster: Cluster, devices: Any) -> None:
    """Make a map over these devices and call it, in each of two steps."""
    rows = cluster.rows(WIDTH)
    control(impl, cluster)
    cluster.twice(lambda: impl.map(double(), devices=devices)(rows))
