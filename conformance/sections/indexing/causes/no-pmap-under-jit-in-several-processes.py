import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
doubled = jax.pmap(lambda x: 2 * x, "i")(np.ones(jax.local_device_count(), np.float32))
print("by itself:", doubled.addressable_shards[0].data, flush=True)
under_jit = jax.jit(lambda x: jax.pmap(lambda x: 2 * x, "i")(x))(doubled)
print("under jit:", under_jit.addressable_shards[0].data)
