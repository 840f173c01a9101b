import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows, y = np.ones((8, 128), np.float32), np.ones(128, np.float32)
print(jax.pmap(lambda x, y: x + y, in_axes=(0, None), out_axes=None)(rows, y).shape)
added = jax.shard_map(
    lambda x, y: x.squeeze(0) + y, mesh=mesh, in_specs=(P("i"), P()), out_specs=P()
)
jax.jit(added)(rows, y)
