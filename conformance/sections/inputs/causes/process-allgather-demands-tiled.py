import sys

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
by_rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
here = np.full(jax.local_device_count(), jax.process_index())
array = jax.make_array_from_process_local_data(by_rows, here)
print(multihost_utils.process_allgather(array, tiled=True))
print(multihost_utils.process_allgather(array))
