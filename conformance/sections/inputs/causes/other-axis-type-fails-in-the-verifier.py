import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

auto = Mesh(np.array(jax.devices()), ("i",))
explicit = Mesh(np.array(jax.devices()), ("i",), axis_types=(AxisType.Explicit,))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=auto, in_specs=P("i"), out_specs=P("i")))
for mesh in (auto, explicit):
    replicated = jax.device_put(np.arange(8), NamedSharding(mesh, P()))
    print([int(row.data[0]) for row in doubled(replicated).addressable_shards])
