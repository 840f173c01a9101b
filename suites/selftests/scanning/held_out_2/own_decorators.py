"""Decorators of our own around pmap: timing, retry, and one that pads."""
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        out = fn(*args, **kwargs)
        jax.block_until_ready(out)
        print(fn.__name__, time.perf_counter() - start)
        return out

    return wrapper


def data_parallel(axis_name="batch", **options):
    def decorate(fn):
        return functools.wraps(fn)(jax.pmap(fn, axis_name=axis_name, **options))

    return decorate


@timed
@data_parallel(axis_name="b")
def normalise(x):
    mean = jax.lax.pmean(x.mean(0), "b")
    return (x - mean) / 2.0


@data_parallel(in_axes=(None, 0))
def project(w, x):
    return x @ w


@timed
def plain(x):
    return x * 2


def main():
    x = np.ones((jax.local_device_count(), 4, 4), np.float32)
    y = normalise(x)
    print(y[0, :2])  # finds: index-replicates-the-row
    z = project(np.eye(4, dtype=np.float32), x)
    print(z[1:].shape)  # finds: several-rows-gather-the-whole-array
    a = plain(x)
    print(a[0], a[1:])
    print(jnp.asarray(x)[0])


if __name__ == "__main__":
    main()
