import jax
import numpy as np
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("i", "j"))
rows = np.arange(8.0).reshape(4, 2)


def summed(x):
    return jax.lax.psum(x[0], "i")


mapped = shard_map(summed, mesh, in_specs=P("i"), out_specs=P(), auto=frozenset({"j"}))
print(jax.jit(mapped)(rows))
