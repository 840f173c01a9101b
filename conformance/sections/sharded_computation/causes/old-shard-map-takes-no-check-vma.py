import jax
import numpy as np
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))

for function in shard_map, jax.shard_map:
    for word in "check_rep", "check_vma":
        specs = {"in_specs": P("i"), "out_specs": P("i"), word: False}
        try:
            mapped = function(lambda x: x + 1, mesh=mesh, **specs)
            print(word, jax.jit(mapped)(np.zeros(8)).shape)
        except TypeError as error:
            print(word, type(error).__name__)
