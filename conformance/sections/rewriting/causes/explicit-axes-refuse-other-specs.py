import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

explicit = Mesh(np.array(jax.devices()), ("i",), axis_types=(AxisType.Explicit,))
renamed = Mesh(np.array(jax.devices()), ("k",), axis_types=(AxisType.Explicit,))
rows = np.arange(64).reshape(8, 8)
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=explicit, in_specs=P("i"), out_specs=P("i")))
for x in (
    jax.device_put(rows, NamedSharding(explicit, P("i"))),
    rows,  # of NumPy
    jax.device_put(rows, NamedSharding(explicit, P(None, "i"))),
    jax.device_put(rows, NamedSharding(renamed, P("k"))),  # each row is where it is to be
):
    try:
        print(int(doubled(x).sum()))
    except ValueError as error:
        print(str(error)[:98])
