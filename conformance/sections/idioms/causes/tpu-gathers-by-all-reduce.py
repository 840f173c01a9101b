import re

import jax
import numpy as np
from jax.experimental import topologies

chips = topologies.get_topology_desc("v5e:2x4", platform="tpu").devices
mesh = jax.sharding.Mesh(np.array(chips), ("i",))
lies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
losses = jax.ShapeDtypeStruct((8,), np.float32, sharding=lies)

gather = jax.shard_map(
    lambda x: jax.lax.all_gather(x[0], "i")[None],
    mesh=mesh,
    in_specs=jax.sharding.PartitionSpec("i"),
    out_specs=jax.sharding.PartitionSpec("i"),
)
text = jax.jit(gather).lower(losses).compile().as_text()
print(sorted(set(re.findall(r" (all-gather|all-reduce)(?:-start)?\(", text))))
