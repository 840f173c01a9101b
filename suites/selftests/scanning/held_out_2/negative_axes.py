"""Rows come last, and come back last."""
import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.pmap, in_axes=-1, out_axes=-1)  # finds: negative-axis-taken-literally
def columns(v):
    return jnp.sort(v)


@functools.partial(jax.pmap, in_axes=1, out_axes=1)
def columns_by_number(v):
    return jnp.sort(v)


def vmapped(x):
    return jax.vmap(jnp.sort, in_axes=-1, out_axes=-1)(x)


class Sorter:
    def __init__(self, axis):
        self.axis = axis
        self.run = jax.pmap(jnp.sort, in_axes=(0,), out_axes=0)
        self.back = jax.pmap(jnp.sort, out_axes=-1)  # finds: negative-axis-taken-literally

    def __call__(self, x):
        return jnp.moveaxis(self.run(jnp.moveaxis(x, self.axis, 0)), 0, -1)


def main(x):
    return columns(x), columns_by_number(x), vmapped(x), Sorter(-1)(x)
