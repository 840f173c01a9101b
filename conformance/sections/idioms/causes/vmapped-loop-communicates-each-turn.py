import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
starts = jax.device_put(np.arange(1.0, 9.0), NamedSharding(mesh, P("i")))


def grow(x):
    return jax.lax.while_loop(lambda y: y < 40, lambda y: y * 1.5, x)


def communicates(function):
    return "all-reduce" in jax.jit(function).lower(starts).compile().as_text()


mapped = jax.shard_map(lambda x: grow(x[0])[None], mesh=mesh, in_specs=P("i"), out_specs=P("i"))
print("all-reduces under jit:", communicates(jax.vmap(grow)))
print("all-reduces in a shard_map:", communicates(mapped))
