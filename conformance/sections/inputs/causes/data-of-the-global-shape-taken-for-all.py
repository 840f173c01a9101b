import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
by_rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
# Too many rows for a part of so many, and unlike those of all other processes.
here = 100 * jax.process_index() + np.arange(jax.device_count())
array = jax.make_array_from_process_local_data(by_rows, here, (jax.device_count(),))
print(here.tolist(), "->", [int(one.data[0]) for one in array.addressable_shards])
