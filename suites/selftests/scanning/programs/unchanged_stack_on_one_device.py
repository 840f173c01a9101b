# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax
import jax.numpy as jnp

def feed(shards, sharding):
    return jax.device_put(jnp.stack(shards), sharding)  # finds: replacement-holds-the-whole-stack
