import jax
import jax.numpy as jnp

per_device = jax.pmap(lambda x: jnp.tanh(x))

def parts(x):
    return jnp.unstack(per_device(x))  # finds: unstack-moves-rows-twice
