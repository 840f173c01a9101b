import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
mesh = jax.sharding.Mesh(np.array(here), ("i",))
replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
rows = jax.device_put(np.arange(len(here)), replicated)
print([int(one.data[0]) for one in jax.pmap(lambda x: 2 * x)(rows).addressable_shards])
