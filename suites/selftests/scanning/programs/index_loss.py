import jax
import jax.numpy as jnp

@jax.pmap
def loss(w, x):
    return jnp.mean((x @ w) ** 2)

def report(w, x):
    value = loss(w, x)
    print("loss", float(value[0]))  # finds: index-replicates-the-row
