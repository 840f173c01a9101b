import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.arange(jax.local_device_count())
doubled = jax.pmap(lambda x: 2 * x, "i")
print(doubled(rows).shape)
print(doubled.lower(rows).compile()(rows).shape)
