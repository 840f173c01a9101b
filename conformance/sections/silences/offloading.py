"""Gradients in a body whose intermediate values are offloaded to the memory of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
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
