import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

stack = jax.pmap(lambda x: 2 * x)(np.ones((8, 2, 3)))
mesh = Mesh(np.array(jax.devices()), ("i",))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
array = doubled(np.ones((16, 3)))
print("jax.pmap:", stack.shape, "shard_map:", array.shape)
print("concatenated:", jax.numpy.concatenate(stack).shape, jax.numpy.concatenate(array).shape)
