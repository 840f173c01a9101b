import sys
import warnings

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
doubled = jax.pmap(lambda x: 2 * x)
rows = doubled(np.ones(jax.local_device_count(), np.float32))
for call in ("first", "second"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        doubled(rows)
    print(call, [str(one.message).split(";")[0] for one in caught])
