import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

devices = jax.devices()
wanted, other = (
    NamedSharding(Mesh(np.array(order), ("i",)), PartitionSpec("i"))
    for order in (devices, devices[::-1])
)
doubled = jax.jit(lambda x: x * 2, in_shardings=wanted)
rows = jax.device_put(np.arange(len(devices), dtype=np.float32), other)
print(np.asarray(doubled(rows)), flush=True)
print(np.asarray(doubled(rows)))
