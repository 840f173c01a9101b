import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def doubled(x):
    return 2 * x


rows = np.zeros((8, 0, 3), np.float32)
print("pmap:", jax.pmap(doubled, "i")(rows).sharding.is_fully_replicated)
mesh = Mesh(np.array(jax.devices()), ("i",))
mapped = jax.jit(jax.shard_map(doubled, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
print("shard_map:", mapped(rows).sharding.is_fully_replicated)
