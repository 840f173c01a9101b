import jax
import numpy as np

doubled = jax.pmap(lambda x: 2 * x, "i")(np.ones((8, 3), np.float32))
print("doubled + 1 is on", len((doubled + 1).devices()))
print("doubled[0] is on", len(doubled[0].devices()))
elsewhere = jax.device_put(np.ones(3, np.float32), jax.devices()[5])
print("their sum is on", (doubled[0] + elsewhere).devices())
