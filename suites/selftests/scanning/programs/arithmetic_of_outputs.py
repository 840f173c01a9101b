import jax
import jax.numpy as jnp

step = jax.pmap(lambda x: x.mean())

def main(x):
    values = step(x)
    return jnp.sum(values) / values.shape[0]
