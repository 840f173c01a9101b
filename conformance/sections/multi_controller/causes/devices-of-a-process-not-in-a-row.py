import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = len(jax.local_devices())
interleaved = [one for at in range(here) for one in jax.devices()[at::here]]
rows = np.arange(here) + here * jax.process_index()
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", devices=interleaved)
print([int(one.data[0]) for one in total(rows).addressable_shards])
