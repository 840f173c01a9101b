import jax
import numpy as np

devices = jax.local_devices()[:4]
try:
    result = jax.pmap(lambda x: 2 * x, "i", devices=devices)(np.ones((2, 3)))
    print(result.shape, "on", len(result.sharding.device_set), "of", len(devices), "devices")
except ValueError as error:
    print(str(error)[:133])
