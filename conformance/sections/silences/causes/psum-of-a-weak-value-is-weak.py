import jax
import numpy as np

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
spec = jax.sharding.PartitionSpec("i")
weak = jax.vmap(lambda x: 1.0)(jax.numpy.arange(8))
total = jax.shard_map(
    lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=spec, out_specs=jax.sharding.PartitionSpec()
)
print(weak.weak_type, jax.jit(total)(weak).weak_type)
