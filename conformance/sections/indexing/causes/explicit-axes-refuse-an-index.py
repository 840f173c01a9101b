import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
x = jax.device_put(np.ones((8, 3), np.float32), NamedSharding(mesh, PartitionSpec("i")))
for take in (lambda x: x[0], jax.jit(lambda x: x[0]), jax.jit(lambda x: x[jax.numpy.int32(1)])):
    try:
        print(take(x))
    except Exception as error:
        print(type(error).__name__, str(error)[:60])
