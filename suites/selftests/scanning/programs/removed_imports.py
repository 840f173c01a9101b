import jax
from jax.interpreters.pxla import xla_pmap_p  # finds: public-names-removed
from jax.lax import pvary as vary  # finds: public-names-removed
from jax.interpreters.xla import canonicalize_dtype  # finds: public-names-removed


def body(x):
    return vary(x, "i")


def primitive():
    return jax.extend.core.primitives.xla_pmap_p  # finds: public-names-removed
