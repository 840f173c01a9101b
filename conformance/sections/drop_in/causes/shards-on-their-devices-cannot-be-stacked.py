import jax
import numpy as np

shards = [jax.device_put(np.ones(3, np.float32), device) for device in jax.local_devices()]
print(np.stack(shards).shape, flush=True)
print(jax.numpy.stack(shards).shape)
