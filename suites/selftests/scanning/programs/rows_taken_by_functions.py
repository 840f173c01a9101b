import operator

import jax
import jax.numpy as jnp
from jax import lax

step = jax.pmap(lambda x: jnp.exp(x))


def rows(x):
    out = step(x)
    first = out.__getitem__(0)  # finds: index-replicates-the-row
    same = operator.getitem(out, 0)  # finds: index-replicates-the-row
    taken = jnp.take(out, 0, axis=0)  # finds: index-replicates-the-row
    by_method = out.take(0, axis=0)  # finds: index-replicates-the-row
    indexed = lax.dynamic_index_in_dim(out, 0, keepdims=False)  # finds: index-replicates-the-row
    some = lax.slice_in_dim(out, 0, 2)  # finds: several-rows-gather-the-whole-array
    return first, same, taken, by_method, indexed, some


def of_each_device(x):
    out = step(x)
    return jnp.take(out, 0, axis=1), lax.slice_in_dim(out, 0, 2, axis=1), {}.__getitem__(0)
