import jax
import numpy as np

rows = np.arange(jax.local_device_count())
one = jax.device_put(np.int32(10), jax.devices()[0])  # committed to one device
added = jax.pmap(lambda x, y: x + y, in_axes=(0, None))
for _ in range(2):
    print([int(row.data[0]) for row in added(rows, one).addressable_shards])
