import jax

inner = jax.pmap(lambda x: x + 1)


@jax.jit
def outer(x):
    return helper(x).sum()


def helper(x):
    return inner(x)  # finds: transformed-map-spans-one-process


TABLE = {"lower": lambda x: inner.lower(x).compile()}  # finds: compiled-stage-is-global
