import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("i",))
sharding = NamedSharding(mesh, PartitionSpec("i"))


def body(x):
    return jax.lax.with_sharding_constraint(2 * x, sharding)


print(jax.pmap(body, "i")(np.ones((8, 8)))[0])
