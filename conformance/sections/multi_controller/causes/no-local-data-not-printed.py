import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
last = Mesh(np.array(jax.devices()[-1:]), ("a",))
print(jax.device_put(np.float32(1), NamedSharding(last, P())))
