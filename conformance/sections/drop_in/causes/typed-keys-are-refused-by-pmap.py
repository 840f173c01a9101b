import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
mesh = jax.sharding.Mesh(np.array(here), ("x",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
keys = jax.device_put(jax.numpy.stack([jax.random.key(0)] * len(here)), sharding)
print(jax.pmap(jax.random.key_data)(keys).shape)
