import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
jax.config.update("jax_debug_nans", True)
count = jax.local_device_count()
rows = np.arange(1, 1 + count, dtype=np.float32) + jax.process_index() * count


def step(x):
    total = jax.lax.psum(x, "i")
    return total, (x - 1) / (x - 1)  # NaN in process 0, where x is 1


try:
    jax.block_until_ready(jax.pmap(step, "i")(rows))
    print("returned")
except FloatingPointError:
    print("raised")
total = jax.pmap(lambda x: jax.lax.psum(x * 1000, "i"), "i")(rows)
print(float(total.addressable_shards[0].data[0]), flush=True)
