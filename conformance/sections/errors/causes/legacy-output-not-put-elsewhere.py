import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
x = jax.pmap(lambda x: 2 * x)(np.arange(len(here)))
mesh = jax.sharding.Mesh(np.array(here), ("i",))
replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
print(np.asarray(jax.device_put(x, replicated)))
