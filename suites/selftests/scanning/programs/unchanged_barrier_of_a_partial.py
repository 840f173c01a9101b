# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import functools

import jax
import jax.numpy as jnp


@functools.lru_cache(None)
def barrier():
    return jax.pmap(functools.partial(jax.lax.psum, axis_name="i"), axis_name="i")


def wait():
    jax.block_until_ready(barrier()(jnp.zeros(jax.local_device_count())))  # finds: psum-meets-sync-and-hangs


def total(x):
    return barrier()(x).addressable_data(0)
