import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

count = jax.device_count()
rows = np.arange(count * 2, dtype=np.float32).reshape(count, 2)
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i"))
print(jax.jit(lambda x: x[: count // 2])(jax.device_put(rows, sharding)).shape)
