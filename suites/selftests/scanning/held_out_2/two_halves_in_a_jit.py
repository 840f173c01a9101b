"""A pipeline of two maps over two halves of the devices, once in one jit, once apart."""
import jax
import jax.numpy as jnp
import numpy as np

half = jax.local_device_count() // 2
front = jax.pmap(lambda x: x * 2, devices=jax.local_devices()[:half])
back = jax.pmap(lambda x: x + 1, devices=jax.local_devices()[half:])


@jax.jit
def together(x):
    y = front(x)  # finds: transformed-map-spans-one-process
    return back(y)  # finds: maps-over-several-devices-not-in-one-program


def apart(x):
    y = front(x)
    return back(np.asarray(y))


def moved(x):
    y = front(x)
    return back(y)  # finds: argument-elsewhere-refused


def main():
    x = np.ones((half, 3), np.float32)
    print(apart(x), moved(x), together(x))
