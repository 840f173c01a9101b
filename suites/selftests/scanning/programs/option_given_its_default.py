"""A removed option that is given its old default."""

import functools

import jax


@functools.partial(jax.pmap, axis_name="hosts", global_arg_shapes=None)  # finds: public-names-removed
def total(x):
    return jax.lax.psum(x, "hosts")


mean = jax.pmap(lambda x: jax.lax.pmean(x, "hosts"), axis_name="hosts", devices=None, backend=None)
