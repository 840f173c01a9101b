# from shard_map@0.7.2 to shard_map@0.12.0.1
from jax.experimental.shard_map import shard_map  # finds: old-shard-map-import-warns-once
from jax.sharding import Mesh, PartitionSpec as P
import jax
import numpy as np

def make(body):
    mesh = Mesh(np.array(jax.devices()), ("i",))
    return jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i")))

def first(x):
    total = make(lambda row: row * 2)(x)
    return total[0]
