import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
rows = np.arange(len(here))
backwards = jax.sharding.Mesh(np.array(here[::-1]), ("i",))
misplaced = jax.sharding.NamedSharding(backwards, jax.sharding.PartitionSpec("i"))
doubled = jax.pmap(lambda x: 2 * x)
for x in (jax.device_put(rows, misplaced), rows):
    try:
        print([int(one.data[0]) for one in doubled(x).addressable_shards])
    except Exception as error:
        print(type(error).__name__, "in place of a result")
