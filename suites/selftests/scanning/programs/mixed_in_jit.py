"""Ensembled critic whose target network lives on the first device."""
import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.pmap, axis_name="d")
def grad_step(w, x):
    g = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
    return w - 0.1 * jax.lax.pmean(g, "d")


@jax.jit
def polyak(target, online, tau):
    return jax.tree.map(lambda t, o: (1 - tau) * t + tau * o, target, online)


def main():
    n = jax.local_device_count()
    target = jax.device_put(jnp.zeros((4,)), jax.devices()[0])
    w = np.zeros((n, 4), np.float32)
    for _ in range(10):
        x = np.random.randn(n, 16, 4).astype(np.float32)
        w = grad_step(w, x)  # finds: calls-run-python
        online = w[0]  # finds: index-replicates-the-row
        target = polyak(target, online, 0.01)  # finds: results-stay-on-all-devices
    print(target)


if __name__ == "__main__":
    main()
