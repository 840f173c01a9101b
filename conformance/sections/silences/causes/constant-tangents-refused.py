import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(8, dtype=np.float32)


def slope(x):
    return jax.vjp(lambda y: y**2, x)[1](jnp.ones(1))[0]


def over(**options):
    return jax.jit(jax.shard_map(slope, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options))


print(over(check_vma=False)(rows))
over()(rows)
