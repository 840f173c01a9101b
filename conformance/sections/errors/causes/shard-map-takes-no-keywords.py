import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

rows = np.arange(8, dtype=np.float32)
mesh = Mesh(np.array(jax.devices()), ("i",))


def added(x, y):
    return x + 2 * y


over = jax.shard_map(added, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i"))
print("pmap, by keyword", jax.pmap(added)(rows, y=rows).shape)
print("shard_map, by position", over(rows, rows).shape)
for name, function in (("shard_map", over), ("under jit", jax.jit(over))):
    try:
        function(rows, y=rows)
    except TypeError as error:
        print(f"{name}, by keyword: {error}")
