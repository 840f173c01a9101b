import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
replicated = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P())
thirds = np.array([1 / 3])  # float64, the same in each process
print(jax.device_put(thirds.astype(np.float32), replicated))
print(jax.device_put(thirds, replicated))
