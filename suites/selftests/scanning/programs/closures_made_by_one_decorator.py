import functools

import jax
import jax.numpy as jnp


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)

    return wrapper


def parallel(**options):
    def decorate(fn):
        return functools.wraps(fn)(jax.pmap(fn, **options))

    return decorate


@timed
@parallel(axis_name="b")
def mapped(x):
    return jnp.sum(x)


@timed
def plain(x):
    return x * 2


def use(x):
    print(plain(x)[0], plain(x)[1:])
    return mapped(x)[0]  # finds: index-replicates-the-row
