"""Parameters are split from what is static before they are mapped."""
import equinox as eqx
import jax
import jax.numpy as jnp


def train(model, batches, optim):
  params, static = eqx.partition(model, eqx.is_array)

  def step(params, opt_state, x, y):
    def objective(p):
      m = eqx.combine(p, static)
      return jnp.mean((jax.vmap(m)(x) - y) ** 2)
    value, grads = jax.value_and_grad(objective)(params)
    grads = jax.lax.pmean(grads, axis_name='devices')
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(params, updates), opt_state, value

  p_step = jax.pmap(step, axis_name='devices', in_axes=(None, None, 0, 0), out_axes=(None, None, 0))
  opt_state = optim.init(params)
  values = []
  for x, y in batches:
    params, opt_state, value = p_step(params, opt_state, x, y)  # finds: own-output-traced-again
    values.append(value)
  return eqx.combine(params, static), jnp.stack(values).mean()
