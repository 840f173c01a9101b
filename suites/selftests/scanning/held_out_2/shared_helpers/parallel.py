import jax
import jax.numpy as jnp
import numpy as np


def shard(tree):
    n = jax.local_device_count()
    return jax.tree.map(lambda x: x.reshape((n, x.shape[0] // n) + x.shape[1:]), tree)


def unshard(tree):
    return jax.tree.map(lambda x: x.reshape((-1,) + x.shape[2:]), tree)


def first(tree):
    return jax.tree.map(lambda x: x[0], tree)  # finds: index-replicates-the-row


def compile_step(fn, donate=True):
    return jax.pmap(fn, axis_name="batch", donate_argnums=(0,) if donate else ())
