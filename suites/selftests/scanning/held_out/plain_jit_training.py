"""No pmap at all: nothing to find."""
import jax
import jax.numpy as jnp
import numpy as np
import optax


def pmap_like(f, xs):
  """Maps in Python; its name says pmap."""
  return [f(x) for x in xs]


@jax.jit
def step(params, opt_state, batch):
  loss, grads = jax.value_and_grad(lambda p: jnp.mean((batch['x'] @ p - batch['y']) ** 2))(params)
  return params, opt_state, {'loss': loss}


def fit(params, opt_state, loader):
  for batch in loader:
    params, opt_state, metrics = step(params, opt_state, batch)
    first = metrics['loss']
    row = batch['x'][0]
  outs = pmap_like(lambda x: x * 2, [1, 2, 3])
  return params, outs[0], first, row
