import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np


def bcast_local_devices(value):
  """Broadcasts an object to all local devices."""
  devices = jax.local_devices()

  def _replicate(x):
    return jax.device_put_sharded(len(devices) * [x], devices)  # finds: device-put-stackers-gone

  return jax.tree_util.tree_map(_replicate, value)


def main(net, batches, rng):
  rng = bcast_local_devices(rng)
  init = jax.pmap(net.init)
  params = init(rng, next(batches))
  fwd = jax.pmap(net.apply)
  for batch in batches:
    out = fwd(params, rng, batch)  # finds: calls-run-python
    out = jax.device_get(out)
    yield out[0]
