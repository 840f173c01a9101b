import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

backwards = Mesh(np.array(jax.devices()[::-1]), ("i",))
rows = np.arange(jax.device_count())
array = jax.make_array_from_callback(
    rows.shape, NamedSharding(backwards, P("i")), lambda index: rows[index]
)
print(jax.pmap(lambda x: 2 * x)(array))
