import jax
from flax import jax_utils

step = jax.pmap(lambda s: s)

def save(state):
    state = step(jax_utils.replicate(state))  # finds: device-put-stackers-gone
    return jax_utils.unreplicate(state)  # finds: unreplicated-onto-one-device
