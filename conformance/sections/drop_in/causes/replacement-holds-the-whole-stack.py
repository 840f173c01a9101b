import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
shards = [np.full(2**20, i, np.float32) for i in range(8)]  # 4 MiB each
stack = jax.numpy.stack(shards)
placed = jax.device_put(stack, sharding)
print(stack.nbytes // 2**20, "MiB of a stack on", stack.devices())
print(sum(shard.data.nbytes for shard in placed.addressable_shards) // 2**20, "MiB of its parts")
