import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, pmap, random


def hmc_step(key, position, step_size):
  momentum = random.normal(key, position.shape)
  return position + step_size * momentum


def run_chain(key, init, num_samples):
  def body(carry, key):
    x = hmc_step(key, carry, 0.1)
    return x, x
  return lax.scan(body, init, random.split(key, num_samples))[1]


def sample(key, init, num_samples):
  chains = jax.local_device_count()
  run = pmap(run_chain, in_axes=(0, 0, None), static_broadcasted_argnums=2)
  samples = run(random.split(key, chains), init, num_samples)
  burnt = samples[:, num_samples // 2:]  # finds: results-stay-on-all-devices
  first_chain = samples[0]  # finds: index-replicates-the-row
  some = samples[1:3]  # finds: several-rows-gather-the-whole-array
  return np.mean(burnt, axis=(0, 1)), first_chain, some
