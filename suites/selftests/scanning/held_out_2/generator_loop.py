"""Training as a generator of metrics; the caller decides when to stop."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np


def batches(seed, n):
    rng = np.random.default_rng(seed)
    while True:
        yield rng.standard_normal((n, 8, 3), dtype=np.float32)


def body(w, x):
    g = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)
    g = jax.lax.psum(g, "n")
    return w - 1e-2 * g, jnp.linalg.norm(g)


def training(seed=0):
    n = jax.local_device_count()
    step = jax.pmap(body, axis_name="n")
    w = np.zeros((n, 3, 2), np.float32)
    for x in batches(seed, n):
        w, norm = step(w, x)  # finds: own-output-traced-again
        yield w, norm


def main():
    last = None
    for w, norm in itertools.islice(training(), 10):
        print("norm", norm[0])  # finds: index-replicates-the-row
        last = w
    weights = jax.device_get(last)
    print(weights[0].shape)
    for row in weights:
        print(row.sum())


main()
