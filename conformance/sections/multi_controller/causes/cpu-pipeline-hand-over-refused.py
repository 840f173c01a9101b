import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
x = jax.device_put(np.arange(4), jax.devices()[0])
for device in jax.devices()[1:]:  # a stage of a pipeline on each
    x = jax.device_put(x, device)
print(x.sharding)
