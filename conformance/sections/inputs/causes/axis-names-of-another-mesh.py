import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

one, other = (
    Mesh(np.array(jax.devices()), (name,), axis_types=(AxisType.Explicit,)) for name in "ik"
)
x = jax.device_put(np.arange(8), NamedSharding(other, P("k")))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=one, in_specs=P("i"), out_specs=P("i")))
print(doubled(x).tolist())
