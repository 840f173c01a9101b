import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
first = jax.local_devices(process_index=0)
sharding = NamedSharding(Mesh(np.array(first), ("i",)), P("i"))
here = np.ones(len(first) if jax.process_index() == 0 else 0)
try:
    print(jax.make_array_from_process_local_data(sharding, here, (len(first),)).shape)
except StopIteration as error:
    print(repr(error))
