import os
import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
barrier = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")
one = np.ones(jax.local_device_count())
many = np.ones((jax.local_device_count(), 64))
try:
    for values in (one, many) if jax.process_index() % 2 else (many, one):
        barrier(values).block_until_ready()
except jax.errors.JaxRuntimeError as error:  # whose peer is gone: nobody to wait for at the exit
    print(error, flush=True)
    os._exit(1)
