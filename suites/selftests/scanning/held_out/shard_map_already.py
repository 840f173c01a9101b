# from shard_map@0.7.2 to shard_map@0.12.0.1
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.shard_map import shard_map  # finds: old-shard-map-import-warns-once
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ('x',))


@jax.jit
@functools.partial(shard_map, mesh=mesh, in_specs=P('x'), out_specs=P('x'))
def normalise(x):
  return x / jax.lax.psum(jnp.sum(x), 'x')


def main(x):
  x = jax.device_put(x, NamedSharding(mesh, P('x')))
  y = normalise(x)
  return np.asarray(y)[0]
