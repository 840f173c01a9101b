import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mapped = jax.pmap(lambda x: {"a": 2 * x}, out_axes={"a": 0})
print(mapped(np.ones((jax.local_device_count(), 1)))["a"].shape)
