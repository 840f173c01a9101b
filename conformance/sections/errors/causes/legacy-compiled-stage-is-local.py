import sys

import jax
import numpy as np
from jax.experimental.multihost_utils import host_local_array_to_global_array
from jax.sharding import Mesh, PartitionSpec

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.arange(jax.local_device_count())
doubled = jax.pmap(lambda x: 2 * x)
everyones = host_local_array_to_global_array(rows, Mesh(jax.devices(), "i"), PartitionSpec("i"))
for name, lowered_for in (("local", rows), ("global", everyones)):
    try:
        print(name, doubled.lower(lowered_for).compile()(everyones).shape)
    except Exception as error:
        print(f"{name} {type(error).__name__}: {error}"[:70])
