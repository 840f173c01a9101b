import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

rows = np.arange(8.0)
output = jax.pmap(lambda x: 2 * x, "i")(rows)
mesh = jax.make_mesh((jax.device_count(),), ("i",))
print(output + jax.device_put(rows, NamedSharding(mesh, PartitionSpec("i"))))
