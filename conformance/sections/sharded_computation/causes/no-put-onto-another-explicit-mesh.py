import jax
import numpy as np


def mesh(*sizes, names):
    types = (jax.sharding.AxisType.Explicit,) * len(sizes)
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(sizes), names, axis_types=types)


P = jax.sharding.PartitionSpec
with jax.set_mesh(mesh(4, 2, names=("X", "Y"))):
    x = jax.device_put(np.ones((8, 4), np.float32), P("X", "Y"))
    line = jax.sharding.NamedSharding(mesh(8, names=("A",)), P("A", None))
    print(jax.typeof(jax.device_put(x, line)))
