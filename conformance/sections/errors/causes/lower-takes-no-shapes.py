import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
shape = jax.ShapeDtypeStruct((jax.local_device_count(), 3), np.float32)
doubled = jax.pmap(lambda x: 2 * x, axis_name="i")
print("lowered" if doubled.lower(shape).as_text() else "")
