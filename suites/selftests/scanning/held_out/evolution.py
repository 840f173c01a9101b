"""Evolution strategies: a population is split over devices."""
import functools
import logging
import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, static_argnums=(1,))
def reshape_for_devices(params, n):
  return jax.tree.map(lambda x: x.reshape(n, -1, *x.shape[1:]), params)


@functools.partial(jax.jit, static_argnums=(1, 2))
def report_score(scores, n_devices, n_repeats):
  return jnp.mean(scores.reshape(-1, n_repeats), axis=-1)


class SimManager:
  def __init__(self, policy, task, n_repeats, pop_size, use_for_loop=False):
    self._num_device = jax.local_device_count()
    self._n_repeats = n_repeats
    rollout = jax.vmap(functools.partial(self._rollout, policy, task))
    if self._num_device > 1:
      self._rollout_fn = jax.pmap(rollout, in_axes=(0, None), axis_name='pop')
    else:
      self._rollout_fn = jax.jit(rollout)

  @staticmethod
  def _rollout(policy, task, params, key):
    return policy(params, task.reset(key))

  def eval_params(self, params, key, test=False):
    if self._num_device > 1:
      params = reshape_for_devices(params, self._num_device)
    scores = self._rollout_fn(params, key)
    scores = report_score(scores, self._num_device, self._n_repeats)
    logging.info('best %f', jnp.max(scores))
    return scores
