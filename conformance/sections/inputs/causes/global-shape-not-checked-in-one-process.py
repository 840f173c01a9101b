import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

devices = jax.device_count()
by_rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
data = np.zeros((devices, 2), np.float32)
print(jax.make_array_from_process_local_data(by_rows, data, (2 * devices, 2)).shape)
