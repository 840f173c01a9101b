import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
inner = jax.pmap(lambda x: 2 * x, "j")
print(jax.pmap(inner, "i")(np.ones((jax.local_device_count(), 1))))
