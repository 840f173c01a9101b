import sys

import jax
import numpy as np
from jax.experimental.multihost_utils import sync_global_devices

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
barrier = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")
ones = np.ones(jax.local_device_count())
barrier(ones).block_until_ready()  # a CPU gives up after 30 s on the first of some devices
sync_global_devices("first barrier")
if jax.process_index() % 2:
    barrier(ones).block_until_ready()
else:
    sync_global_devices("other barrier")
print("passed", flush=True)
