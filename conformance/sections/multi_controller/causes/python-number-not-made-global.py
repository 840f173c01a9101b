import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones(len(jax.local_devices()), np.float32)
print(jax.pmap(lambda x, w: x + w, in_axes=(0, None))(rows, 1.0).shape)
