import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
scale = jax.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("i")))
print(jax.pmap(lambda x: x * scale.sum())(np.arange(8.0)))
