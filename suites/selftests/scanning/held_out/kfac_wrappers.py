"""Helpers of an optimizer that runs with and without pmap."""
import functools
from typing import Any, Callable
import jax
from jax import core
import jax.numpy as jnp


def in_pmap(axis_name):
  if axis_name is None:
    return False
  try:
    jax.lax.axis_index(axis_name)
    return True
  except NameError:
    return False


def wrap_if_pmap(p_func: Callable) -> Callable:
  @functools.wraps(p_func)
  def p_func_if_pmap(obj, axis_name):
    return p_func(obj, axis_name) if in_pmap(axis_name) else obj
  return p_func_if_pmap


pmean_if_pmap = wrap_if_pmap(jax.lax.pmean)
psum_if_pmap = wrap_if_pmap(jax.lax.psum)


def get_first(obj):
  return jax.tree_util.tree_map(lambda x: x[0], obj) if isinstance(obj, dict) else obj[0]


def get_mean(obj):
  return jax.tree_util.tree_map(lambda x: jnp.mean(x, axis=0), obj)


def replicate_all_local_devices(obj):
  n = jax.local_device_count()
  obj_stacked = jax.tree_util.tree_map(lambda x: jnp.stack([x] * n, axis=0), obj)
  return jax.pmap(lambda x: x)(obj_stacked)


def make_different_rng_key_on_all_devices(rng):
  rng = jax.random.fold_in(rng, jax.process_index())
  rng = jax.random.split(rng, jax.local_device_count())
  return jax.pmap(lambda x: x)(rng)


def pmap_sync(x):
  return jax.pmap(lambda t: jax.lax.pmean(t, 'i'), axis_name='i')(x)
