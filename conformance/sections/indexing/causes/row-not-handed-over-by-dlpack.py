import jax
import numpy as np

out = jax.pmap(lambda x: x * 2, "i")(np.ones((jax.local_device_count(), 3), np.float32))
try:
    print(np.from_dlpack(out[0]))
except BufferError as error:
    print(type(error).__name__)
