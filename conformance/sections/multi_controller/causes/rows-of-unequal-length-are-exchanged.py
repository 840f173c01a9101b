import sys

import jax
import numpy as np

jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
number, last = jax.process_index(), jax.device_count() - 1
send = jax.pmap(lambda x: jax.lax.ppermute(x, "i", [(0, last)]), "i")
rows = np.ones((jax.local_device_count(), 4 + 4 * number), np.float32)
row = np.asarray(send(rows).addressable_shards[-1].data).ravel()
print(f"process {number}: {row[:4].tolist()} of {row.size}")
