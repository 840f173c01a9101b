"""Every way in which we wrote partial(pmap)."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax, pmap

dp = partial(pmap, axis_name="dp")
dp_none = partial(jax.pmap, axis_name="dp", in_axes=(0, None), out_axes=0)


@partial(pmap, axis_name="dp", static_broadcasted_argnums=(1,))
def powers(x, n):
    return lax.psum(x ** n, "dp")


@dp
def centred(x):
    return x - lax.pmean(x, "dp")


@partial(dp_none)
def affine(x, w):
    return x * w + 1


@partial(jax.jit, static_argnums=1)
def jitted(x, n):
    return x ** n


def report(x):
    a = powers(x, 2)
    b = centred(x)
    c = affine(x, 3.0)
    d = jitted(x, 2)
    print(a[0])  # finds: index-replicates-the-row
    print(b[-1])  # finds: index-replicates-the-row
    print(c[:2])  # finds: several-rows-gather-the-whole-array
    print(d[0], d[:2], d[-1])
    return jnp.concatenate([a, b, c])
