import warnings

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
summed = jax.shard_map(lambda x: x.sum(1), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
maps = {
    "jax.pmap": jax.pmap(lambda x: x.sum(), donate_argnums=0),
    "jit(shard_map)": jax.jit(summed, donate_argnums=0),
}
for name, function in maps.items():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        function(np.ones((8, 16), np.float32))  # no output has room for it
    told = [one for one in said if "donated buffers were not usable" in str(one.message)]
    print(name, "warns" if told else "says nothing")
