import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:1]), ("i",))


def double(x):
    return x * 2


def over(**options):
    return jax.jit(jax.shard_map(double, mesh=mesh, in_specs=P("i"), out_specs=P(), **options))


row = np.arange(3, dtype=np.float32)
print(jax.pmap(double, out_axes=None, devices=jax.devices()[:1])(row[None]))
print(over(check_vma=False)(row))
over()(row)
