import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh, backwards = (Mesh(np.array(jax.devices()[::step]), ("i",)) for step in (1, -1))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
for place in (jax.devices()[0], NamedSharding(backwards, P("i"))):
    try:
        print(doubled(jax.device_put(np.arange(8), place)))
    except ValueError as error:
        print(str(error)[:55])
