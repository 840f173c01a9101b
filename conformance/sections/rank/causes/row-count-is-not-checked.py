import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
count = jax.local_device_count()
for rows in (2 * count, count + 1):
    doubled = jax.pmap(lambda x: 2 * x)
    for _ in range(2):
        try:
            print(doubled(np.ones((rows, 3))).shape)
        except Exception as error:
            print(type(error).__name__, str(error)[:66])
