import re

import jax
import numpy as np
from jax.experimental import topologies

chips = topologies.get_topology_desc("v5e:2x4", platform="tpu").devices
mesh = jax.sharding.Mesh(np.array(chips), ("i",))
lies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
rows = jax.ShapeDtypeStruct((8, 3, 4), np.float32, sharding=lies)

text = jax.jit(jax.numpy.unstack).lower(rows).compile().as_text()
print(len(re.findall(r" collective-permute(?:-start)?\(", text)), "collective-permutes")
print(len(re.findall(r" all-reduce(?:-start)?\(", text)), "all-reduce")
