"""Takes gradients and scans through a pmapped function."""
import jax
import jax.numpy as jnp
import numpy as np


@jax.pmap
def scores(x):
    return jnp.sum(x ** 2)


def objective(x):
    return scores(x).sum()  # finds: transformed-map-spans-one-process


def descend(x, lr=0.1):
    g = jax.grad(objective)(x)
    return x - lr * g


def rollout(x0, steps):
    forward = jax.pmap(lambda x: jnp.cos(x) + x)

    def body(x, _):
        return forward(x), None  # finds: transformed-map-spans-one-process

    return jax.lax.scan(body, x0, None, length=steps)[0]


def inner_gradient(x):
    return jax.pmap(jax.grad(lambda v: jnp.sum(jnp.sin(v))))(x)


@jax.jit
def summary(x):
    y = scores(x)  # finds: transformed-map-spans-one-process
    return y.mean(), y.std()


def main():
    n = jax.local_device_count()
    x = np.linspace(0, 1, n * 3, dtype=np.float32).reshape(n, 3)
    x = descend(x)
    print(rollout(x, 4), summary(x), inner_gradient(x))
