import functools

import jax


def parallelize(enabled=True):
    def deco(f):
        if not enabled:
            return jax.jit(f)
        mapped = jax.pmap(f)

        @functools.wraps(f)
        def call(*args):
            return mapped(*args)

        return call

    return deco


@parallelize()
def square(x):
    return x * x


def main(x):
    return square(x)[0]  # finds: index-replicates-the-row
