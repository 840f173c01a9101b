import functools
import time
from typing import Any, Tuple

from absl import logging
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax

_PMAP_AXIS_NAME = 'i'


@flax.struct.dataclass
class TrainingState:
  optimizer_state: optax.OptState
  params: Any
  normalizer_params: Any
  env_steps: jnp.ndarray


def _unpmap(v):
  return jax.tree_util.tree_map(lambda x: x[0], v)  # finds: index-replicates-the-row


def _strip_weak_type(tree):
  def f(leaf):
    leaf = jnp.asarray(leaf)
    return leaf.astype(leaf.dtype)
  return jax.tree_util.tree_map(f, tree)


def assert_is_replicated(x: Any, debug: Any = None):
  """Checks that all devices have the same."""
  f = functools.partial(jnp.sum, axis=0)
  def is_same(x):
    ys = jax.lax.all_gather(x, axis_name=_PMAP_AXIS_NAME)
    return jnp.all(ys == ys[0])
  assert jax.pmap(lambda t: jnp.all(jnp.array([is_same(l) for l in jax.tree_util.tree_leaves(t)])), axis_name=_PMAP_AXIS_NAME)(x)[0], debug  # finds: index-replicates-the-row


def train(environment, num_timesteps, network, seed=0, num_envs=1, max_devices_per_host=None):
  process_count = jax.process_count()
  process_id = jax.process_index()
  local_device_count = jax.local_device_count()
  local_devices_to_use = local_device_count
  if max_devices_per_host:
    local_devices_to_use = min(local_devices_to_use, max_devices_per_host)
  device_count = local_devices_to_use * process_count
  assert num_envs % device_count == 0

  key = jax.random.PRNGKey(seed)
  global_key, local_key = jax.random.split(key)
  local_key = jax.random.fold_in(local_key, process_id)
  local_key, key_env, eval_key = jax.random.split(local_key, 3)

  reset_fn = jax.jit(jax.vmap(environment.reset))
  key_envs = jax.random.split(key_env, num_envs // process_count)
  key_envs = jnp.reshape(key_envs, (local_devices_to_use, -1) + key_envs.shape[1:])
  env_state = reset_fn(key_envs)

  def training_step(carry, unused_t):
    training_state, state, key = carry
    return (training_state, state, key), {'loss': jnp.zeros(())}

  def training_epoch(training_state, state, key):
    (training_state, state, _), loss_metrics = jax.lax.scan(training_step, (training_state, state, key), (), length=8)
    loss_metrics = jax.tree_util.tree_map(jnp.mean, loss_metrics)
    return training_state, state, loss_metrics

  training_epoch = jax.pmap(training_epoch, axis_name=_PMAP_AXIS_NAME)

  def training_epoch_with_timing(training_state, env_state, key):
    t = time.time()
    training_state, env_state = _strip_weak_type((training_state, env_state))
    result = training_epoch(training_state, env_state, key)  # finds: own-output-traced-again
    training_state, env_state, metrics = _strip_weak_type(result)
    metrics = jax.tree_util.tree_map(jnp.mean, metrics)
    jax.tree_util.tree_map(lambda x: x.block_until_ready(), metrics)
    return training_state, env_state, metrics

  training_state = TrainingState(None, network.init(global_key), None, jnp.zeros(()))
  training_state = jax.device_put_replicated(training_state, jax.local_devices()[:local_devices_to_use])  # finds: device-put-stackers-gone
  current_step = 0
  for it in range(10):
    logging.info('starting iteration %s', it)
    epoch_key, local_key = jax.random.split(local_key)
    epoch_keys = jax.random.split(epoch_key, local_devices_to_use)
    training_state, env_state, training_metrics = training_epoch_with_timing(training_state, env_state, epoch_keys)
    current_step = int(_unpmap(training_state.env_steps))
    if process_id == 0:
      params = _unpmap((training_state.normalizer_params, training_state.params))
      logging.info('%s', params)
  return params
