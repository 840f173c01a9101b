"""Unpacks, zips and lists outputs."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np

f = jax.pmap(lambda x: jnp.sum(x ** 2))
g = jax.pmap(lambda x: (x + 1, x - 1))


def named(x, names):
    return {name: float(value) for name, value in zip(names, f(x))}  # finds: iteration-goes-through-the-host


def listed(x):
    return list(f(x))  # finds: iteration-goes-through-the-host


def summed(x):
    return sum(f(x))  # finds: iteration-goes-through-the-host


def pair(x):
    plus, minus = g(x)
    return plus.mean(), minus.mean()


def pairs(x):
    plus, minus = g(x)
    for a, b in zip(plus, minus):  # finds: iteration-goes-through-the-host
        print(a, b)


def host(x):
    return list(np.asarray(f(x))), sum(jax.device_get(f(x)))


def separate(x):
    return [float(v) for v in itertools.chain(x, x)]


def unstacked(x):
    return jnp.unstack(f(x))  # finds: unstack-moves-rows-twice
