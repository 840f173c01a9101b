import jax
import jax.numpy as jnp

step = jax.pmap(lambda x: x + 1)


class Average:
    def __init__(self, device):
        self.device = device
        self.mean = None

    def add(self, rows):
        row = rows[0]  # finds: index-replicates-the-row
        if self.mean is None:
            self.mean = jax.device_put(row, self.device)
        else:
            self.mean = 0.9 * self.mean + 0.1 * row  # finds: results-stay-on-all-devices


def follow(x):
    average = Average(jax.local_devices()[0])
    average.add(step(x))
    return average.mean


def norm(x, weights):
    weights = jnp.exp(-jax.device_put(weights, jax.local_devices()[1]))
    row = step(x)[0]  # finds: index-replicates-the-row
    return (weights.reshape(-1) * row).sum()  # finds: results-stay-on-all-devices


def lazily(x, scale):
    average = Average(jax.local_devices()[0])
    if average.mean is None:
        average.mean = scale
    return average.mean * step(x)
