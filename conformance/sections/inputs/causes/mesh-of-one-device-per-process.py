import sys

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mesh = jax.make_mesh((jax.process_count(),), ("batch",))  # as the guide writes it
print("processes in the mesh:", sorted({int(d.process_index) for d in mesh.devices.flat}))
rows = np.full((32, 10), jax.process_index())
try:
    joined = jax.make_array_from_process_local_data(NamedSharding(mesh, P("batch")), rows)
    print(joined.shape)
except StopIteration as error:
    print(repr(error))
