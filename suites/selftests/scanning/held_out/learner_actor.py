"""A learner of a distributed agent; its state is on all local devices."""
import time
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import optax

_PMAP_AXIS_NAME = 'data'


class TrainingState(NamedTuple):
  params: Any
  target_params: Any
  opt_state: Any
  steps: int


def get_from_first_device(nest, as_numpy: bool = True):
  """Gets the first array of a nest of arrays on several devices."""
  def _slice_and_maybe_to_numpy(x):
    x = x[0]  # finds: index-replicates-the-row
    return jax.device_get(x) if as_numpy else x
  return jax.tree_util.tree_map(_slice_and_maybe_to_numpy, nest)


def replicate_in_all_devices(nest, devices: Optional[List[Any]] = None):
  devices = devices or jax.local_devices()
  return jax.device_put_sharded([nest] * len(devices), devices)  # finds: device-put-stackers-gone


class SGDLearner:

  _state: TrainingState

  def __init__(self, network, loss_fn, optimizer, data_iterator: Iterator, random_key, num_sgd_steps_per_step=1):
    self.network = network

    def sgd_step(state: TrainingState, batch) -> Tuple[TrainingState, Any]:
      grads, extra = jax.grad(loss_fn, has_aux=True)(state.params, state.target_params, batch)
      grads = jax.lax.pmean(grads, axis_name=_PMAP_AXIS_NAME)
      updates, new_opt_state = optimizer.update(grads, state.opt_state)
      new_params = optax.apply_updates(state.params, updates)
      return TrainingState(new_params, state.target_params, new_opt_state, state.steps + 1), extra

    self._data_iterator = data_iterator
    self._sgd_step = jax.pmap(sgd_step, axis_name=_PMAP_AXIS_NAME)

    initial_params = network.init(random_key)
    state = TrainingState(initial_params, initial_params, optimizer.init(initial_params), 0)
    self._state = replicate_in_all_devices(state)
    self._timestamp = None

  def step(self):
    batch = next(self._data_iterator)
    self._state, extra = self._sgd_step(self._state, batch)  # finds: own-output-traced-again
    start = time.time()
    result = get_from_first_device(extra)
    return result, time.time() - start

  def get_variables(self, names):
    return [get_from_first_device(self._state.params)]

  def save(self):
    return jax.tree_util.tree_map(get_from_first_device, self._state)

  def restore(self, state):
    self._state = replicate_in_all_devices(state)
