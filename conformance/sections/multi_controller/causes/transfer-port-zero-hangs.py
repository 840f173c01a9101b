import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_cross_host_transfer_socket_address", "127.0.0.1:0")
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
half = jax.device_count() // 2
first = NamedSharding(Mesh(np.array(jax.devices()[:half]), ("a",)), P("a"))
second = NamedSharding(Mesh(np.array(jax.devices()[half:]), ("a",)), P("a"))
x = jax.device_put(np.arange(half), first)
y = jax.device_put(x, second)
print([np.asarray(shard.data) for shard in y.addressable_shards])
