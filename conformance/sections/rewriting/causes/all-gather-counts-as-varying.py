import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))


def gathered(x):  # the same on all devices
    return jax.lax.all_gather(x, "i", tiled=True)


for options in ({"check_vma": False}, {}):
    mapped = jax.shard_map(gathered, mesh=mesh, in_specs=P("i"), out_specs=P(), **options)
    print(jax.jit(mapped)(np.arange(8)))
