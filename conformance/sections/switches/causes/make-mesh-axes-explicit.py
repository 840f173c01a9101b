import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((jax.device_count() // 2, 2), ("a", "b"))
x = jax.device_put(np.ones((8, 4)), NamedSharding(mesh, PartitionSpec("a", "b")))
y = jax.device_put(np.ones((4, 8)), NamedSharding(mesh, PartitionSpec("b", None)))
print(jax.nn.relu(x @ y).sharding)
