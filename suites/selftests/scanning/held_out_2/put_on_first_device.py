"""Loads parameters to the first device, then gives them to a pmap."""
import jax
import jax.numpy as jnp
import numpy as np

first_device = jax.devices()[0]


def load(path):
    with np.load(path) as archive:
        return {name: jax.device_put(archive[name], first_device) for name in archive.files}


@jax.pmap
def square(x):
    return x ** 2


def squared_on_one(x):
    x = jax.device_put(x, first_device)
    return square(x)  # finds: argument-elsewhere-refused


def squared_from_host(x):
    return square(np.asarray(x))


def squared_uncommitted(x):
    return square(jnp.asarray(x))


def jitted_on_one(x):
    x = jax.device_put(x, first_device)
    return jax.jit(jnp.square)(x)


def main(path):
    params = load(path)
    n = jax.local_device_count()
    rows = np.ones((n, 3))
    print(squared_from_host(rows), squared_uncommitted(rows), squared_on_one(rows))
    return jitted_on_one(params["w"])
