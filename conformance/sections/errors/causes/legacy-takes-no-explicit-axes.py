import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((jax.device_count(),), ("i",))
rows = jax.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("i")))
print(jax.pmap(lambda x: 2 * x)(rows))
