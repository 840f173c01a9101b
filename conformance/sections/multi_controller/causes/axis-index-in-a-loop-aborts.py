import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = jax.sharding.PartitionSpec("i")
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
counted = jax.shard_map(
    lambda x: x * (1 + jax.lax.axis_index("i")), mesh=mesh, in_specs=rows, out_specs=rows
)
x = np.ones((jax.device_count(), 8), np.float32)
print("looped")
result = jax.lax.scan(lambda carry, _: (counted(carry), None), x, None, length=3)[0]
print(float(result.addressable_shards[1].data.max()))
