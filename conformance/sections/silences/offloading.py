"""Bodies that move values to the memory of the host, directly or for a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 3
WEIGHTS = np.array([2, 3, 5], np.float32)
NAME = "products"  # of what is kept for the backward pass


@described("2 w² x, by NumPy")
def gradient(place: Place) -> Any:
    return 2 * WEIGHTS**2 * place.rows(WIDTH)


OFFLOADING = Defaults(
    claim="pmap-silence.offloaded-activations",
    needs=devices(2),
    left_out="the body uses its own device's row only",
    expect=everywhere(twice(returns(gradient))),
)


def differentiated(impl: Implementation, cluster: Cluster, policy: Callable[..., Any]) -> None:
    """Map the gradient of (w x)², in which this policy says how the products are kept."""

    def loss(x: Any) -> Any:
        return (checkpoint_name(x * WEIGHTS, NAME) ** 2).sum()

    function = impl.map(jax.grad(jax.checkpoint(loss, policy=policy)))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


@OFFLOADING.clause(
    "silences.offloaded.to-host",
    title="A body's gradient offloads intermediate values to host memory, by jax.checkpoint.",
)
def to_host(impl: Implementation, cluster: Cluster) -> None:
    """A gradient with the policy `save_and_offload_only_these_names`."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=[NAME],
        offload_src="device",
        offload_dst="pinned_host",
    )
    differentiated(impl, cluster, policy)


@OFFLOADING.clause(
    "silences.offloaded.saved",
    title="A body's gradient keeps intermediate values on the device, by jax.checkpoint.",
    fixes="silences.offloaded.to-host",
)
def saved(impl: Implementation, cluster: Cluster) -> None:
    """The same gradient with the policy `save_only_these_names`."""
    differentiated(impl, cluster, jax.checkpoint_policies.save_only_these_names(NAME))


@described("x w + 1, by NumPy")
def moved(place: Place) -> Any:
    return place.rows(WIDTH) * WEIGHTS + 1


@OFFLOADING.clause(
    "silences.offloaded.device-put",
    title="A body moves a value to host memory and back, by jax.device_put.",
    expect=everywhere(twice(returns(moved))),
)
def device_put(impl: Implementation, cluster: Cluster) -> None:
    """`jax.device_put` of a traced value to each of the two memories."""
    cluster.twice(impl.map(through_host()), impl.given(cluster.rows(WIDTH)))


@OFFLOADING.clause(
    "silences.offloaded.explicit-mesh",
    title="A body over a mesh with an Explicit axis moves a value to host memory and back.",
    expect=of_shard_map(twice(returns(moved)), "pmap takes no mesh"),
)
def explicit_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`jax.shard_map` over the axis type that `jax.make_mesh` gives by default from JAX 0.9.0."""
    mesh = Mesh(impl.mesh().devices, ("i",), axis_types=(AxisType.Explicit,))
    function = jax.jit(jax.shard_map(through_host(), mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    rows = jax.device_put(cluster.rows(WIDTH), NamedSharding(mesh, P("i")))
    cluster.twice(impl.adopt(function, "jit(shard_map)"), rows)


def through_host() -> Callable[[Any], Any]:
    """Return a body that takes the product of its row through host memory."""
    host, device = memories()
    return lambda x: jax.device_put(jax.device_put(x * WEIGHTS, host), device) + 1


def memories() -> tuple[Any, Any]:
    """Return what `jax.device_put` takes for the memory of the host and of the device."""
    if hasattr(jax, "memory"):
        return jax.memory.Space.Host, jax.memory.Space.Device
    from jax._src.sharding_impls import TransferToMemoryKind  # JAX 0.7.0 has no public name

    return TransferToMemoryKind("pinned_host"), TransferToMemoryKind("device")
