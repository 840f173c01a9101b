import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("i",))
along_the_second = NamedSharding(mesh, PartitionSpec(None, "i"))
jax.device_put(np.ones((8, 3, 4), np.float32), along_the_second)
