import jax
import numpy as np

count = jax.device_count()
rows = np.arange(2 * count, dtype=np.float32).reshape(2, count)
print(len(jax.vmap(jax.pmap(lambda x: x * 2, "i"))(rows).sharding.device_set) == count)
