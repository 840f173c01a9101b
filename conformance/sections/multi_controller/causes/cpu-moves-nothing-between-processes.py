import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
half = jax.device_count() // 2
first = NamedSharding(Mesh(np.array(jax.devices()[:half]), ("a",)), P("a"))
second = NamedSharding(Mesh(np.array(jax.devices()[half:]), ("a",)), P("a"))
x = jax.device_put(np.arange(half), first)
print(jax.device_put(x, second).shape)
