"""A config dict decides about pmap's options."""
import functools

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np


def get_config():
  config = ml_collections.ConfigDict()
  config.batch_size = 512
  config.axis_name = "batch"
  config.donate = True
  config.pmap_shmap_merge = False
  config.optimizer = ml_collections.ConfigDict({"name": "adam", "lr": 1e-3})
  return config


def configure_jax(config):
  options = {
      "jax_debug_nans": False,
      "jax_pmap_shmap_merge": config.pmap_shmap_merge,  # finds: merge-option-gone
  }
  for name, value in options.items():
    jax.config.update(name, value)


def build(config, loss_fn):
  def update(params, batch):
    grads = jax.grad(loss_fn)(params, batch)
    grads = jax.lax.pmean(grads, config.axis_name)
    return jax.tree.map(lambda p, g: p - config.optimizer.lr * g, params, grads)

  kwargs = dict(axis_name=config.axis_name)
  if config.donate:
    kwargs["donate_argnums"] = (0,)
  return jax.pmap(update, **kwargs)


def train(config, loss_fn, params, loader):
  update = build(config, loss_fn)
  n = jax.local_device_count()
  params = jax.tree.map(lambda p: np.stack([p] * n), params)
  for batch in loader:
    params = update(params, batch)  # finds: own-output-traced-again
  return jax.tree.map(lambda p: p[0], params)  # finds: index-replicates-the-row
