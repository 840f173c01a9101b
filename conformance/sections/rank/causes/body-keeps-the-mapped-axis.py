import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def body(x):
    print("the body sees", x.shape)
    return jax.lax.psum(x, "i")


mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.ones((8, 128), np.float32)
jax.pmap(body, "i")(rows)
total = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P()))(rows)
print("replicated", total.shape)
