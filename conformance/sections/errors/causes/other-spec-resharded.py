import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("i",))
# Sharded by columns, where the map takes rows; and replicated.
for spec in (PartitionSpec(None, "i"), PartitionSpec()):
    x = jax.device_put(np.arange(64).reshape(8, 8), NamedSharding(mesh, spec))
    doubled = jax.pmap(lambda row: 2 * row)
    for _ in range(2):
        print(spec, [int(row.data[0, 0]) for row in doubled(x).addressable_shards])
