import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("i", "j"), axis_types=(AxisType.Auto, AxisType.Auto))


def double(x):
    return jax.lax.with_sharding_constraint(x * 2, P(None, "j"))


mapped = jax.shard_map(double, mesh=mesh, in_specs=P("i"), out_specs=P("i"), axis_names={"i"})
print(jax.jit(mapped)(np.arange(32.0).reshape(8, 4)).ravel()[:5])
