import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
by_rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
here = np.zeros(jax.local_device_count() * (1 + jax.process_index()))  # more in each process
print(jax.make_array_from_process_local_data(by_rows, here).shape)
