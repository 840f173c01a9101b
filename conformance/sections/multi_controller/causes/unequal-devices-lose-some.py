import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
all_but_one = jax.devices()[:-1]
here = len([one for one in all_but_one if one in jax.local_devices()])
mesh = jax.sharding.Mesh(all_but_one, "i")
P, lies = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
ones = jax.make_array_from_callback((len(all_but_one),), lies(mesh, P("i")), lambda at: np.ones(1))
met = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
jax.jit(met)(ones).block_until_ready()  # a CPU gives up after 30 s on the first of some devices
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", devices=all_but_one)
try:
    print([int(one.data[0]) for one in total(np.ones(here, int)).addressable_shards])
except Exception as error:
    print(type(error).__name__)
