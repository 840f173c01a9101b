import threading

import jax
import numpy as np

changed = threading.Event()


def wait(x):
    changed.wait(60)
    return np.asarray(x)


def body(x, batch):  # the callback takes the place of long computations
    return jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + batch


devices = jax.local_device_count()
memory = np.zeros(devices * 64 + 4096, np.uint8)
start = -memory.ctypes.data % 4096  # an address that is a multiple of 64 bytes
batch = memory[start : start + devices * 64].view(np.float32).reshape(devices, 16)
batch[:] = 1
out = jax.pmap(body, "i")(np.zeros_like(batch), batch)
batch[:] = -1  # the next batch
changed.set()
print(np.asarray(out)[0, :3])
