import sys

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mesh = Mesh(np.array(jax.devices()), ("i",))
same = jax.jit(jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
batch = 100 * jax.process_index() + np.arange(jax.device_count())  # another in each process
print(batch.tolist(), "->", [int(one.data[0]) for one in same(batch).addressable_shards])
