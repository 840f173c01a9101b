"""The tutorial on sharded computation: where arrays lie, what jit and shard_map make of them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.worker.protocols import Implementation, Mapped

COUNT = 8  # the tutorial's devices
SIZE = 32  # and elements
LOCAL = SIZE // COUNT  # elements per device

ABOUT_JIT = "the documented example uses jit and shard_map"  # it does not know pmap

P = jax.sharding.PartitionSpec


def line() -> jax.sharding.Mesh:
    """The tutorial's mesh: all devices in a row, the axis named by a string."""
    return jax.sharding.Mesh(np.array(jax.devices()), "x")


def sharding(mesh: jax.sharding.Mesh, *axes: Any) -> jax.sharding.NamedSharding:
    """The NamedSharding of an array whose dimensions lie along these axes of the mesh."""
    return jax.sharding.NamedSharding(mesh, P(*axes))


def mapped_by_specs(
    impl: Implementation,
    body: Any,
    mesh: jax.sharding.Mesh,
    in_specs: Any,
    out_specs: Any,
    *,
    jitted: bool = True,
) -> Mapped:
    """Return the body in a shard_map over the mesh, in its own jit or without one, as the tutorial
    calls it.
    """
    function = jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    return impl.adopt(jax.jit(function), "jit(shard_map)") if jitted else impl.adopt(function)
