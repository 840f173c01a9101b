import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mapped = jax.pmap(lambda x: 2 * x)
x = mapped(np.ones((jax.local_device_count(), 4), np.float32))
for _ in range(3):
    mapped(x)
entered = set()
sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_name))
mapped(x)
sys.setprofile(None)
wanted = ("host_local_array_to_global_array", "global_array_to_host_local_array")
print([name for name in wanted if name in entered])
