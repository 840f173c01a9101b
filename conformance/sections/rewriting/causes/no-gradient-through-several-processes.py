import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones(jax.local_device_count(), np.float32)
squared = jax.pmap(lambda x: x**2, "i")
print(squared(rows).tolist())
print(jax.grad(lambda x: squared(x).sum())(rows).tolist())
