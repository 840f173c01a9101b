import sys

import jax
import jax.numpy as jnp
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
count = jax.local_device_count()
weak = jax.vmap(lambda x: 1.0)(jnp.arange(count))
print(weak.weak_type, jax.pmap(lambda x: x, "i")(weak).weak_type)
print(jax.pmap(lambda x: 2.0, "i")(weak).weak_type)
print(jax.pmap(lambda x, y: x + y, "i")(np.ones(count, np.float16), weak).dtype)
