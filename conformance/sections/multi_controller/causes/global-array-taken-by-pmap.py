import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("rows",))
rows = np.arange(jax.device_count())
array = jax.make_array_from_callback(
    rows.shape, NamedSharding(mesh, P("rows")), lambda index: rows[index]
)
result = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), "i")(array)
print(result.shape, [int(one.data[0]) for one in result.addressable_shards])
