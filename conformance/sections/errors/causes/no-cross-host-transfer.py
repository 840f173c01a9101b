import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
one = jax.device_put(np.float32(1), jax.local_devices()[0])  # the same in each process
print(jax.device_put(one, replicated))
