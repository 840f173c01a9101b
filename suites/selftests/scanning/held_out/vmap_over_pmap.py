import jax
import jax.numpy as jnp

distances = jax.pmap(lambda x, y: jnp.linalg.norm(x - y), in_axes=(0, None))


def all_pairs(xs, ys):
  return jax.vmap(lambda y: distances(xs, y))(ys)  # finds: transformed-map-spans-one-process


@jax.jit
def energy(xs, y):
  return distances(xs, y).sum()  # finds: transformed-map-spans-one-process


force = jax.grad(energy)
