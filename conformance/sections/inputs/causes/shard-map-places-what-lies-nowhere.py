import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
doubled = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
for rows in (np.arange(8), jnp.arange(8)):  # on no device, and not committed to the one it is on
    print([int(row.data[0]) for row in doubled(rows).addressable_shards])
