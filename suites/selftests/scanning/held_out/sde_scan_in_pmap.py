"""Several steps of an update in one mapped call, by a scan in its body."""
import functools
import flax
import flax.jax_utils as flax_utils
import jax
import jax.numpy as jnp
import numpy as np


def get_step_fn(sde, model, optimize_fn):
  def step_fn(carry_state, batch):
    (rng, state) = carry_state
    rng, step_rng = jax.random.split(rng)
    grad_fn = jax.value_and_grad(lambda p: jnp.mean(model.apply(p, batch, step_rng)))
    loss, grad = grad_fn(state.params)
    grad = jax.lax.pmean(grad, axis_name='batch')
    state = optimize_fn(state, grad)
    return (rng, state), jax.lax.pmean(loss, axis_name='batch')
  return step_fn


def train(config, sde, model, state, optimize_fn, train_iter):
  train_step_fn = get_step_fn(sde, model, optimize_fn)
  p_train_step = jax.pmap(functools.partial(jax.lax.scan, train_step_fn), axis_name='batch', donate_argnums=1)
  pstate = flax_utils.replicate(state)  # finds: device-put-stackers-gone
  rng = jax.random.fold_in(jax.random.PRNGKey(0), jax.process_index())
  for step in range(0, config.training.n_iters + 1, config.training.n_jitted_steps):
    batch = jax.tree_util.tree_map(lambda x: x._numpy(), next(train_iter))
    rng, *next_rng = jax.random.split(rng, num=jax.local_device_count() + 1)
    next_rng = jnp.asarray(next_rng)
    (_, pstate), ploss = p_train_step((next_rng, pstate), batch)  # finds: own-output-traced-again
    loss = flax.jax_utils.unreplicate(ploss).mean()  # finds: unreplicated-onto-one-device
    if step % config.training.snapshot_freq == 0 and jax.process_index() == 0:
      saved_state = flax_utils.unreplicate(pstate)  # finds: unreplicated-onto-one-device
      yield step, loss, saved_state
