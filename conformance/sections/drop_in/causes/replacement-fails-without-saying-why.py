import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def put_sharded(shards, devices):  # the guide's device_put_sharded
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), PartitionSpec("x"))
    return jax.tree.map(lambda *leaves: jax.device_put(jax.numpy.stack(leaves), sharding), *shards)


rows, there = [np.ones(3, np.float32)] * 8, jax.devices()
for shards, devices in (([], there), (rows, []), (rows[:2], [there[0], there[0]])):
    try:
        put_sharded(shards, devices)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
