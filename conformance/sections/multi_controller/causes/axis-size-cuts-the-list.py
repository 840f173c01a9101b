import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones(len(jax.local_devices()), int)
for size in (len(rows), jax.device_count() // 2, jax.device_count() + 1):
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", axis_size=size)
    try:
        print(size, [int(one.data[0]) for one in total(rows).addressable_shards])
    except Exception as error:
        print(size, error)
