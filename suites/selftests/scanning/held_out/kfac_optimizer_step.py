import functools
import jax
import jax.numpy as jnp


class Optimizer:
  """Chooses between pmap and jit, and hands out both alike."""

  def __init__(self, value_and_grad, multi_device=False, pmap_axis_name='kfac_axis'):
    self.multi_device = multi_device
    self.pmap_axis_name = pmap_axis_name
    self._vg = value_and_grad
    self._jit_step = self._compiled(self._step, donate_argnums=(0, 1))
    self._jit_init = self._compiled(self._init)

  def _compiled(self, fun, donate_argnums=()):
    if self.multi_device:
      return jax.pmap(fun, axis_name=self.pmap_axis_name, donate_argnums=donate_argnums)
    return jax.jit(fun, donate_argnums=donate_argnums)

  def _init(self, params):
    return jax.tree.map(jnp.zeros_like, params)

  def _step(self, params, state, batch):
    loss, grads = self._vg(params, batch)
    return params, state, {'loss': loss}

  def init(self, params):
    return self._jit_init(params)

  def step(self, params, state, batch):
    params, state, stats = self._jit_step(params, state, batch)
    if self.multi_device:
      stats = jax.tree.map(lambda x: x[0], stats)  # finds: index-replicates-the-row
    return params, state, stats
