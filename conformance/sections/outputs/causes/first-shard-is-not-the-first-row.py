import sys

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
mesh = Mesh(np.array(jax.devices()), ("i",))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
x = doubled(np.arange(jax.device_count()))
print("x[0]:", int(x[0]), "first shard:", int(x.addressable_shards[0].data.squeeze(0)))
here = np.ones((jax.local_device_count(), 3))
for out_axes, body in ((1, lambda x: x), (None, lambda x: jax.lax.psum(x, "i"))):
    y = jax.pmap(body, "i", out_axes=out_axes)(here)
    try:
        print(out_axes, y.addressable_shards[0].data.squeeze(0).shape)
    except ValueError as error:
        print(out_axes, error)
