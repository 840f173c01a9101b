import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mapped = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
x = jax.pmap(lambda x: x)(np.ones(jax.local_device_count(), np.float32))
by_itself = jax.block_until_ready(mapped(x))
print("by itself:", by_itself.addressable_shards[0].data, flush=True)
under = jax.block_until_ready(jax.jit(lambda x: mapped(x))(x))
print("under jit:", under.addressable_shards[0].data)
