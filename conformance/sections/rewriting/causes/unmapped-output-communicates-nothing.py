import jax
import numpy as np

same = jax.pmap(lambda x: x, "i", out_axes=None)(
    np.arange(8)
)  # a value that each device has its own of
print(same, "replicated:", same.sharding.is_fully_replicated)
print([int(one.data) for one in same.addressable_shards])
