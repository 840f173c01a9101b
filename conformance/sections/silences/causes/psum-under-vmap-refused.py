import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))


def summed(body):
    return jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P())


rows = np.arange(24, dtype=np.float32).reshape(8, 3)
print("as a whole:", summed(lambda x: jax.lax.psum(x, "i"))(rows))
print("by vmap:", summed(jax.vmap(lambda x: jax.lax.psum(x, "i")))(rows))
