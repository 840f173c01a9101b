import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
of_the_first = jax.devices()[: len(jax.local_devices())]
rows = np.ones(len([one for one in of_the_first if one in jax.local_devices()]), int)
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", devices=of_the_first)
try:
    print([int(one.data[0]) for one in total(rows).addressable_shards])
except Exception as error:
    print(type(error).__name__, str(error)[:66])
