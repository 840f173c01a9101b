import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
rows = jax.device_put(np.arange(len(here)), here[0])
doubled = jax.pmap(lambda x: 2 * x)
for _ in range(2):
    print([int(one.data[0]) for one in doubled(rows).addressable_shards])
