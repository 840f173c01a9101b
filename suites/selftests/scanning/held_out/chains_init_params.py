import functools
from jax import device_get, local_device_count, pmap, random, vmap
import jax.numpy as jnp


class Parallel:
  """Runs an init and a sample function under pmap, or vmap where devices are too few."""

  def __init__(self, kernel, num_chains):
    self.kernel = kernel
    self.num_chains = num_chains
    self.method = 'parallel' if local_device_count() >= num_chains else 'vectorized'

  def run(self, rng_key, init):
    keys = random.split(rng_key, self.num_chains)
    if self.method == 'parallel':
      states = pmap(self._single)(keys, init)
    else:
      states = vmap(self._single)(keys, init)
    self._last_state = states
    return device_get(states)

  def _single(self, key, init):
    return self.kernel(key, init)

  def last_state_of_first_chain(self):
    return self._last_state[0]  # finds: index-replicates-the-row
