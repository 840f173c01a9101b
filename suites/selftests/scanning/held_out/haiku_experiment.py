"""An experiment class that keeps replicated parameters on self."""
import functools
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax


def get_first(xs):
  return jax.tree_util.tree_map(lambda x: x[0], xs)  # finds: index-replicates-the-row


def broadcast(obj):
  return jax.device_put_replicated(obj, jax.local_devices())  # finds: device-put-stackers-gone


class Experiment:

  CHECKPOINT_ATTRS = {'_params': 'params', '_opt_state': 'opt_state'}

  def __init__(self, mode, init_rng, config):
    self.mode = mode
    self.config = config
    self._forward = hk.transform_with_state(self._forward_fn)
    self._update_func = jax.pmap(self._update, axis_name='i', donate_argnums=(0, 1, 2))
    self._eval_batch = jax.jit(self._eval_batch_fn)
    self._params = None
    self._state = None
    self._opt_state = None

  def _forward_fn(self, inputs, is_training):
    return hk.nets.ResNet50(1000)(inputs['images'], is_training=is_training)

  def step(self, global_step, rng, **unused):
    if self._params is None:
      self._initialize(rng)
    inputs = next(self._train_input)
    self._params, self._state, self._opt_state, scalars = self._update_func(  # finds: own-output-traced-again
        self._params, self._state, self._opt_state, inputs, rng, global_step)
    return get_first(scalars)

  def _initialize(self, rng):
    init_net = jax.pmap(lambda *a: self._forward.init(*a, is_training=True))
    self._params, self._state = init_net(rng, next(self._train_input))
    init_opt = jax.pmap(self._optimizer().init)
    self._opt_state = init_opt(self._params)

  def _optimizer(self):
    return optax.adam(1e-3)

  def _loss_fn(self, params, state, inputs, rng):
    logits, state = self._forward.apply(params, state, rng, inputs, is_training=True)
    loss = optax.softmax_cross_entropy(logits, inputs['labels']).mean()
    return loss / jax.device_count(), (loss, state)

  def _update(self, params, state, opt_state, inputs, rng, global_step):
    grads, (loss, state) = jax.grad(self._loss_fn, has_aux=True)(params, state, inputs, rng)
    grads = jax.lax.psum(grads, axis_name='i')
    updates, opt_state = self._optimizer().update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    return params, state, opt_state, jax.lax.pmean({'train_loss': loss}, 'i')

  def _eval_batch_fn(self, params, state, inputs):
    logits, _ = self._forward.apply(params, state, None, inputs, is_training=False)
    return jnp.sum(jnp.argmax(logits, -1) == inputs['labels'])

  def evaluate(self, global_step, rng, **unused):
    params = jax.tree_util.tree_map(lambda x: x[0], self._params)  # finds: index-replicates-the-row
    state = get_first(self._state)
    return np.mean([self._eval_batch(params, state, b) for b in self._eval_input])
