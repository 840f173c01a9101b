"""Utilities of a reinforcement learning library."""
import functools
from typing import Any
import jax
from jax import numpy as jnp


def bcast_local_devices(value, local_devices_to_use=1):
  devices = jax.local_devices()[:local_devices_to_use]
  return jax.tree_util.tree_map(
      lambda v: jax.device_put_sharded(len(devices) * [v], devices), value)  # finds: device-put-stackers-gone


def synchronize_hosts():
  if jax.process_count() == 1:
    return
  # Blocks until all hosts are here.
  x = jnp.ones([jax.local_device_count()])
  x = jax.device_get(jax.pmap(lambda x: jax.lax.psum(x, 'i'), 'i')(x))
  assert x[0] == jax.device_count()


def _fingerprint(x: Any) -> float:
  sums = jax.tree_util.tree_map(jnp.sum, x)
  return jax.tree_util.tree_reduce(lambda x, y: x + y, sums)


def is_replicated(x: Any, axis_name: str) -> jnp.ndarray:
  fp = _fingerprint(x)
  return jax.lax.pmin(fp, axis_name=axis_name) == jax.lax.pmax(fp, axis_name=axis_name)


def assert_is_replicated(x: Any, debug: Any = None):
  f = functools.partial(is_replicated, axis_name='i')
  assert jax.pmap(f, axis_name='i')(x)[0], debug  # finds: index-replicates-the-row
