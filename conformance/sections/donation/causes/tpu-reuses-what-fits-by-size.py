import jax
import numpy as np
from jax.experimental import topologies

chips = topologies.get_topology_desc("v5e:2x4", platform="tpu").devices
mesh = jax.sharding.Mesh(np.array(chips), ("i",))
lies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
rows = jax.ShapeDtypeStruct((8, 16), np.float32, sharding=lies)

whole = jax.shard_map(
    lambda x: x.astype(np.int32),
    mesh=mesh,
    in_specs=jax.sharding.PartitionSpec("i"),
    out_specs=jax.sharding.PartitionSpec("i"),
)
text = jax.jit(whole, donate_argnums=0).lower(rows).compile().as_text()
print("input_output_alias" in text.splitlines()[0])
