import jax
import jax.numpy as jnp

step = jax.pmap(lambda x: 2 * x)
donating = jax.pmap(lambda x: 2 * x, donate_argnums=0)


def main(batch, state):
    samples = step(batch).reshape((-1, 3))
    flat = jnp.reshape(step(batch), (-1,))
    print(samples[5])  # finds: index-replicates-the-row (no fix)
    print(flat[0])  # finds: index-replicates-the-row (no fix)
    new = donating(state)
    if state is not None:
        new = new + 1
    return new
