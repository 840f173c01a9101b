import sys

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
inner = jax.pmap(lambda x: 2 * x, "j")
if jax.process_count() > 1:  # nested, as in one process
    print(jax.pmap(inner, "i")(np.ones((jax.local_device_count(), 1))))
else:
    mesh, rows = Mesh(jax.devices()[:4], "i"), PartitionSpec("i")
    outer = jax.shard_map(lambda x: inner(x[0])[None], mesh=mesh, in_specs=rows, out_specs=rows)
    print("one row:", jax.jit(outer)(np.ones((4, 1))).tolist())
    print("two rows:", jax.jit(outer)(np.ones((4, 2))).tolist())
