import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def doubled(x):
    return 2 * x


over = {"mesh": Mesh(jax.devices(), "i"), "in_specs": P("i"), "out_specs": P("i")}
maps = {"pmap": jax.pmap(doubled), "shard_map": jax.jit(jax.shard_map(doubled, **over))}
with jax.set_mesh(Mesh(jax.devices(), "other")):
    for name, function in maps.items():
        try:
            print(name, function(np.arange(8)))
        except ValueError as error:
            print(name, error)
