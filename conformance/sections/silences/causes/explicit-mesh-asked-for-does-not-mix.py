import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

rows = np.arange(8.0)
output = jax.pmap(lambda x: 2 * x, "i")(rows)
mesh = Mesh(np.array(jax.devices()), ("i",), axis_types=(AxisType.Explicit,))
print(output + jax.device_put(rows, NamedSharding(mesh, PartitionSpec("i"))))
