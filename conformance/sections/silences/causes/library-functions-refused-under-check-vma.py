import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = 1 + np.arange(24, dtype=np.float32).reshape(8, 3)


def sample(key, x):
    return jax.random.gamma(key, x)


def over(**options):
    specs = {"in_specs": (P(), P("i")), "out_specs": P("i")}
    return jax.jit(jax.shard_map(sample, mesh=mesh, **specs, **options))


print(over(check_vma=False)(jax.random.key(0), rows).shape)
over()(jax.random.key(0), rows)
