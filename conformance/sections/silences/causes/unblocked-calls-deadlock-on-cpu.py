import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))


def mean(x):
    return jax.lax.psum(x, "i") / jax.device_count() + 0 * x


step = jax.jit(jax.shard_map(mean, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
rows = np.ones((jax.device_count(), 3), np.float32)
for _ in range(1000):
    x = jax.block_until_ready(step(rows))
print("blocked", float(x[0, 0]), flush=True)
for _ in range(1000):
    x = step(x)
print("unblocked", float(x[0, 0]), flush=True)
