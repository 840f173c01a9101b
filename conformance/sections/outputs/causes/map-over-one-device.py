import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

one = jax.devices()[3:4]
row = jax.device_put(np.ones((1, 3), np.float32), one[0])
print("pmap:", type(jax.pmap(lambda x: 2 * x, "i", devices=one)(row).sharding).__name__)
mesh = Mesh(np.array(one), ("i",))
mapped = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
print("shard_map:", type(mapped(row).sharding).__name__)
