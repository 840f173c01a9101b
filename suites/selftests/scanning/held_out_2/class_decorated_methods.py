"""Methods decorated with pmap, self is static."""
import functools

import jax
import jax.numpy as jnp
import numpy as np


class Model:
    def __init__(self, width):
        self.width = width

    @functools.partial(jax.pmap, static_broadcasted_argnums=0, in_axes=(None, 0, 0))
    def forward(self, w, x):
        return jnp.tanh(x @ w) / self.width

    @functools.partial(jax.jit, static_argnums=0)
    def forward_one(self, w, x):
        return jnp.tanh(x @ w) / self.width

    @property
    def name(self):
        return f"model{self.width}"


def benchmark(model, w, x, repeats=10):
    for _ in range(repeats):
        y = model.forward(w, x)  # finds: calls-run-python
    y.block_until_ready()
    return y


def main():
    n = jax.local_device_count()
    model = Model(8)
    w = np.ones((n, 4, 8), np.float32)
    x = np.ones((n, 16, 4), np.float32)
    y = benchmark(model, w, x)
    print(y[0].shape)  # finds: index-replicates-the-row
    one = model.forward_one(w[0], x[0])
    print(one[0], one[1:], model.name[0])
