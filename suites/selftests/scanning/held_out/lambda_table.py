import jax
import jax.numpy as jnp

OPS = {name: jax.pmap(op) for name, op in {"sin": jnp.sin, "cos": jnp.cos}.items()}


def main(x):
    y = OPS["sin"](x)
    return y[1]  # finds: index-replicates-the-row
