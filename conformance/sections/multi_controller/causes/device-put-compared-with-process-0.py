import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
whole = NamedSharding(Mesh(np.array(jax.devices()), ("a",)), P())
try:
    print(jax.device_put(np.float32(jax.process_index()), whole))
except AssertionError as error:
    print("AssertionError:", error)
