import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
x = jax.pmap(lambda x: 2 * x)(np.arange(1, 1 + len(here)))
print(int(x[0]), int(x[-1]), [int(row) for row in x])
