import jax
import numpy as np
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

kinds = (AxisType.Explicit, AxisType.Explicit)
mesh = Mesh(np.array(jax.devices())[None], ("data", "tensor"), axis_types=kinds)
with jax.set_mesh(mesh):
    x = jax.device_put(np.ones((1, 16), np.float32), P("data", "tensor"))
    print(jax.typeof(jax.jit(lambda x: x.reshape(1, 8, 2))(x)))
