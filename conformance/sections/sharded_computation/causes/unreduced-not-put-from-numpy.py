import jax
import numpy as np

P = jax.sharding.PartitionSpec
grid = np.array(jax.devices()).reshape(4, 2)
explicit = (jax.sharding.AxisType.Explicit,) * 2
with jax.set_mesh(jax.sharding.Mesh(grid, ("X", "Y"), axis_types=explicit)):
    array = jax.device_put(np.ones((8, 4), np.float32), P("X", None, unreduced={"Y"}))
first, second = (np.asarray(shard.data) for shard in array.addressable_shards[:2])
print("sums of shards:", np.unique(first + second))
