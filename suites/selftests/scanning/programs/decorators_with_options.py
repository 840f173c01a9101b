import functools

import jax


def parallel(function=None, *, axis="i"):
    if function is None:
        return functools.partial(parallel, axis=axis)
    return jax.pmap(function, axis_name=axis)


class Mapped:
    def __init__(self, function):
        self.function = jax.pmap(function)

    def __call__(self, *arguments):
        return self.function(*arguments)


@parallel(axis="rows")
def with_axis(x):
    return x


@parallel
def plain(x):
    return x


@Mapped
def held(x):
    return x


once = functools.lru_cache(None)(lambda: jax.pmap(lambda x: x))


def main(x):
    print(with_axis(x)[0])  # finds: index-replicates-the-row
    print(plain(x)[0])  # finds: index-replicates-the-row
    print(held(x)[0])  # finds: index-replicates-the-row
    return once()(x)[0]  # finds: index-replicates-the-row
