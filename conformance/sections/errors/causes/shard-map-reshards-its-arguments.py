import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
# Sharded by columns, where the map takes rows; and replicated.
for spec in (P(None, "i"), P()):
    x = jax.device_put(np.arange(64).reshape(8, 8), NamedSharding(mesh, spec))
    for _ in range(2):
        print(spec, [int(row.data[0, 0]) for row in doubled(x).addressable_shards])
