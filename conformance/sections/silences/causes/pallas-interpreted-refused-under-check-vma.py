import jax
import numpy as np
from jax.experimental import pallas
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def kernel(x, out):
    out[...] = x[...] + x[...]


def double(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(kernel, out_shape=shape, interpret=True)(x)


mesh = Mesh(np.array(jax.devices()), ("i",))
specs = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
rows = np.arange(8, dtype=np.float32)
print(jax.pmap(double)(rows[:, None])[:, 0])
print(jax.jit(jax.shard_map(double, **specs, check_vma=False))(rows))
jax.jit(jax.shard_map(double, **specs))(rows)
