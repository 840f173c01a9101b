import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones(len(jax.local_devices()))
output = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")(rows).block_until_ready()
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
try:
    print(jax.device_put(output, everywhere))
except Exception as error:
    print(type(error).__name__, str(error)[:60])
