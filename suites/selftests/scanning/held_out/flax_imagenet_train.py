"""Image classification with replicated train state, in the manner of a flax example."""
import functools
import time
from typing import Any

from absl import logging
from flax import jax_utils
from flax.training import common_utils, train_state
import jax
import jax.numpy as jnp
from jax import lax
import ml_collections
import optax


class TrainState(train_state.TrainState):
  batch_stats: Any
  dynamic_scale: Any


def cross_replica_mean(replicated):
  return jax.pmap(lambda x: lax.pmean(x, 'x'), 'x')(replicated)


def train_step(state, batch, learning_rate_fn):
  def loss_fn(params):
    logits, new = state.apply_fn({'params': params, 'batch_stats': state.batch_stats}, batch['image'], mutable=['batch_stats'])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch['label']).mean(), (new, logits)

  grads, (new, logits) = jax.grad(loss_fn, has_aux=True)(state.params)
  grads = lax.pmean(grads, axis_name='batch')
  metrics = {'accuracy': jnp.mean(jnp.argmax(logits, -1) == batch['label']), 'learning_rate': learning_rate_fn(state.step)}
  return state.apply_gradients(grads=grads, batch_stats=new['batch_stats']), lax.pmean(metrics, 'batch')


def sync_batch_stats(state):
  return state.replace(batch_stats=cross_replica_mean(state.batch_stats))


def train_and_evaluate(config: ml_collections.ConfigDict, train_iter, state, schedule):
  state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
  p_train_step = jax.pmap(functools.partial(train_step, learning_rate_fn=schedule), axis_name='batch')
  train_metrics = []
  last = time.time()
  for step, batch in zip(range(config.num_steps), train_iter):
    state, metrics = p_train_step(state, batch)  # finds: own-output-traced-again
    if step == 0:
      logging.info('Initial compilation completed.')
    train_metrics.append(metrics)
    if (step + 1) % config.log_every_steps == 0:
      train_metrics = common_utils.get_metrics(train_metrics)  # finds: index-replicates-the-row
      summary = {f'train_{k}': v for k, v in jax.tree_util.tree_map(lambda x: x.mean(), train_metrics).items()}
      summary['steps_per_second'] = config.log_every_steps / (time.time() - last)
      logging.info('%s', summary)
      train_metrics = []
      last = time.time()
  state = sync_batch_stats(state)
  return jax.device_get(jax.tree_util.tree_map(lambda x: x[0], state))  # finds: index-replicates-the-row
