# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax
import jax.numpy as jnp

_sync = jax.pmap(lambda x: jax.lax.psum(x, "hosts"), axis_name="hosts")

def wait(devices):
    _sync(jnp.ones(devices)).block_until_ready()  # finds: psum-meets-sync-and-hangs
