import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
scale = jax.device_put(np.arange(8.0), jax.devices()[3])
mapped = jax.shard_map(lambda x: x * scale.sum(), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
print(jax.jit(mapped)(np.arange(8.0)))
mapped(np.arange(8.0))
