import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))


def put_sharded(shards):  # the guide's device_put_sharded
    return jax.tree.map(lambda *leaves: jax.device_put(jax.numpy.stack(leaves), sharding), *shards)


rows = [np.float32(7 * i) for i in range(8)]
print("16 shards:", put_sharded(rows + rows).shape)
print("two dtypes:", put_sharded(rows[:4] + [np.int32(i) for i in range(4)]).dtype)
print("a generator:", put_sharded(row for row in rows).shape)
print("a dict:", put_sharded(dict(enumerate(rows))))
