import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("j",))
inner = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P(), out_specs=P())
print(jax.pmap(lambda x: inner(x), "i")(np.ones((jax.device_count(), 1))))
