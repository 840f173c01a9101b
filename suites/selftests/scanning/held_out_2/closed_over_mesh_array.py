"""A body closes over parameters on a mesh."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

explicit = jax.make_mesh((jax.device_count(),), ("d",))
auto = Mesh(np.array(jax.devices()), ("d",))
table = jax.device_put(np.arange(16.0), NamedSharding(explicit, P()))
auto_table = jax.device_put(np.arange(16.0), NamedSharding(auto, P()))


@jax.pmap
def lookup(i):
    return table[i]  # finds: closed-over-explicit-array-refused


@jax.pmap
def lookup_auto(i):
    return auto_table[i]


@jax.jit
def lookup_jit(i):
    return table[i]


def main():
    i = np.arange(jax.local_device_count())
    y = lookup_auto(i)
    total = y + jax.device_put(np.ones(len(i)), NamedSharding(explicit, P("d")))  # finds: explicit-and-auto-do-not-mix
    return lookup(i), lookup_jit(3), total
