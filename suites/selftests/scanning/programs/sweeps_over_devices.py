"""Hyper-parameter sweep: one learning rate per device."""
import jax
import jax.numpy as jnp
import numpy as np


def train(lr, x, y):
    def body(w, _):
        g = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - lr * g, jnp.mean((x @ w - y) ** 2)

    w, losses = jax.lax.scan(body, jnp.zeros(x.shape[1]), None, length=200)
    return w, losses


def sweep(lrs, x, y):
    n = jax.local_device_count()
    results = []
    for i in range(0, len(lrs), n):
        chunk = np.asarray(lrs[i:i + n])
        w, losses = jax.pmap(train, in_axes=(0, None, None))(chunk, x, y)  # finds: calls-run-python
        results.append((w, losses[:, -1]))  # finds: results-stay-on-all-devices
    return results


def best(lrs, x, y):
    w, losses = jax.pmap(train, in_axes=(0, None, None))(np.asarray(lrs), x, y)
    k = int(np.argmin(np.asarray(losses)[:, -1]))
    return lrs[k], w[k]  # finds: index-replicates-the-row


def best_host(lrs, x, y):
    w, losses = jax.device_get(jax.pmap(train, in_axes=(0, None, None))(np.asarray(lrs), x, y))
    k = int(losses[:, -1].argmin())
    return lrs[k], w[k]


if __name__ == "__main__":
    x = np.random.randn(64, 3)
    y = x @ np.array([1.0, -2.0, 0.5])
    lrs = np.logspace(-3, -1, jax.local_device_count())
    print(sweep(lrs, x, y)[0][0].shape, best(lrs, x, y), best_host(lrs, x, y))
