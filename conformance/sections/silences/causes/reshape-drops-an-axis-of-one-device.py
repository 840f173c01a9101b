import jax
import numpy as np
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

devices, kinds = np.array(jax.devices()), (AxisType.Explicit, AxisType.Explicit)
numbers = np.ones(16, np.float32)
for grid, names, shape, split in (
    (devices[None], ("data", "tensor"), (1, 16), (1, 8, 2)),
    (devices[:, None], ("tensor", "data"), (16, 1), (8, 2, 1)),
):
    with jax.set_mesh(Mesh(grid, names, axis_types=kinds)):
        x = jax.device_put(numbers.reshape(shape), P(*names))
        print(jax.typeof(jax.jit(lambda x, to: x.reshape(to), static_argnums=1)(x, split)))
