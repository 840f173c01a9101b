"""Options of pmap in a dictionary, and a deprecated one among them."""
import jax
import jax.numpy as jnp

COMMON = {"axis_name": "batch", "donate_argnums": ()}


def parallel(fn, **overrides):
    options = {**COMMON, **overrides}
    return jax.pmap(fn, **options)


def legacy(fn, shapes):
    return jax.pmap(fn, axis_name="batch", global_arg_shapes=shapes)  # finds: public-names-removed


def tuple_name(fn):
    return jax.pmap(fn, axis_name=("batch", "model"))  # finds: axis-name-misread


def empty_name(fn):
    return jax.pmap(fn, axis_name="")  # finds: axis-name-misread


def vmap_names(fn):
    return jax.vmap(fn, axis_name=("batch", "model"))


def main(x):
    y = parallel(jnp.sin)(x)
    z = parallel(jnp.cos, in_axes=0)(x)
    total = y + z
    first = total[0]  # finds: index-replicates-the-row
    return first, vmap_names(jnp.sin)(x)[0]
