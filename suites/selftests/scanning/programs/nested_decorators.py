from functools import partial

import jax


@partial(jax.pmap, axis_name="data")
@partial(jax.pmap, axis_name="model")  # finds: nested-pmap-refused
def layer(x, w):
    return jax.lax.pmean(jax.lax.psum(x @ w, "model"), "data")


@jax.pmap
@jax.vmap
def plain(x):
    return x + 1
