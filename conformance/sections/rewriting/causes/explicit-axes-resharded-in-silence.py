import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",), axis_types=(AxisType.Explicit,))
rows = np.arange(64).reshape(8, 8)
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
for x in (rows, jax.device_put(rows, NamedSharding(mesh, P(None, "i")))):
    print([int(row.data[0, 0]) for row in doubled(x).addressable_shards])
