import jax
import numpy as np

rows = np.arange(8)
doubled = jax.pmap(lambda x: 2 * x)
print(doubled(rows))
elsewhere = jax.device_put(rows, jax.devices()[0])
print(doubled(elsewhere))
