import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = len(jax.local_devices())
for count in (here - 1, here + 1, jax.device_count()):
    try:
        print(count, jax.pmap(lambda x: 2 * x)(np.ones(count)).shape)
    except Exception as error:
        print(count, type(error).__name__, str(error).splitlines()[:1])
