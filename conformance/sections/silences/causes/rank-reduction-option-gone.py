import jax
import numpy as np

out = jax.pmap(lambda x: 2 * x, "i")(np.ones((jax.local_device_count(), 3), np.float32))
print("a shard of shape", out.addressable_shards[0].data.shape)
for value in (True, False):
    try:
        jax.config.update("jax_pmap_no_rank_reduction", value)
        print(f"{value}: set")
    except AttributeError as error:
        print(f"{value}: {error}")
