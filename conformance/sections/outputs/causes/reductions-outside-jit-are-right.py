import sys

import jax
import jax.numpy as jnp
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.arange(3.0 * jax.local_device_count(), dtype=np.float32).reshape(-1, 3)
x, mask = jax.pmap(lambda x: (x * 2, x % 2 == 1), "i")(rows)
print("sum:", jnp.sum(x) == np.sum(2 * rows))
print("masked mean:", jnp.mean(x, where=mask) == np.mean(2 * rows[rows % 2 == 1]))
