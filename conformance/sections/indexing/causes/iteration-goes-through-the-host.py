import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
doubled = jax.pmap(lambda x: 2 * x, "i")(np.ones((len(here), 3), np.float32))
for rows in (list(doubled), list(reversed(doubled))):
    print([sorted(here.index(device) for device in row.devices()) for row in rows])
