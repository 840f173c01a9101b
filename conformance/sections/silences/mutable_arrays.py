"""Mutable arrays (`jax.new_ref`) of a body, that a body closes over, and as an argument."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core

from conformance.sections.silences.answers import WIDTH, doubled
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.mutable-arrays",
    needs=devices(2),
    left_out="the body uses its own device's row only",
    expect=everywhere(twice(returns(doubled))),
)


def new_ref(x: Any) -> Any:
    """Return a mutable array; JAX 0.7.0 has no public name for it."""
    make = getattr(jax, "new_ref", None) or core.mutable_array
    return make(x)


@DEFAULTS.clause(
    "silences.mutable-arrays.of-the-body",
    title="A mapped body makes a mutable array (jax.new_ref), changes it and returns its value.",
)
def of_the_body(impl: Implementation, cluster: Cluster) -> None:
    """A body that doubles its row in place."""

    def body(x: Any) -> Any:
        ref = new_ref(x)
        ref[...] = ref[...] * 2
        return ref[...]

    cluster.twice(impl.map(body), impl.given(cluster.rows(WIDTH)))


@DEFAULTS.clause(
    "silences.mutable-arrays.closed-over",
    title="A mapped body reads a mutable array (jax.new_ref) that it closes over.",
)
def closed_over(impl: Implementation, cluster: Cluster) -> None:
    """A body that multiplies its row with a number in a mutable array."""
    factor = new_ref(jnp.array(2, np.float32))
    cluster.twice(impl.map(lambda x: x * factor[...]), impl.given(cluster.rows(WIDTH)))


@DEFAULTS.clause(
    "silences.mutable-arrays.passed",
    title="A mapped function is called with the value of a mutable array as unmapped argument.",
    fixes="silences.mutable-arrays.closed-over",
)
def passed(impl: Implementation, cluster: Cluster) -> None:
    """The number is read outside and passed as a NumPy array: a JAX array is on one device."""
    factor = new_ref(jnp.array(2, np.float32))
    function = impl.map(lambda x, factor: x * factor, in_axes=(0, None))
    cluster.twice(lambda: function(impl.given(cluster.rows(WIDTH)), np.asarray(factor[...])))
