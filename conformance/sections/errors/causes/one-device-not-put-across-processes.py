import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
rows = np.arange(len(jax.devices()))
print([int(one.data[0]) for one in jax.device_put(rows, sharding).addressable_shards])
jax.device_put(jax.device_put(rows, here[0]), sharding)
