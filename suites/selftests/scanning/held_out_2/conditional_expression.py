"""pmap or jit by a flag; outputs by a conditional."""
import jax
import jax.numpy as jnp
import numpy as np

N = jax.local_device_count()
MULTI = N > 1
transform = jax.pmap if MULTI else jax.vmap
step = (jax.pmap if MULTI else jax.jit)(lambda x: x + 1)
apply = transform(lambda x: x * 2)


def show(x):
    y = apply(x)
    value = y[0] if MULTI else y  # finds: index-replicates-the-row
    print(value)
    return (y if y.ndim == 1 else y.reshape(-1))[:2]  # finds: several-rows-gather-the-whole-array


def walrus(x):
    if (z := step(x)).size:
        return z[0]  # finds: index-replicates-the-row
    return None


def plain(x):
    y = jax.vmap(lambda v: v * 2)(x)
    return y[0] if MULTI else y[1:]
