import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

shards = [np.ones(3, np.float32)] * 4  # for eight devices
over = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
try:
    jax.device_put(np.stack(shards), over)
except ValueError as error:
    print(type(error).__name__, error)
    print("caught as ValueError")
