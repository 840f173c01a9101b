import sys

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mesh = Mesh(np.array(jax.devices()), ("i",))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
print(doubled(np.arange(jax.device_count())))
