import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("v",))


def passed(x):
    return jax.shard_map(lambda x: x, mesh=mesh, in_specs=P(), out_specs=P())(x)


def closed_over(x):
    return jax.shard_map(lambda: x, mesh=mesh, in_specs=(), out_specs=P())()


for function in (passed, closed_over):
    print(jax.vmap(function, spmd_axis_name="v")(np.arange(8.0)).shape)
