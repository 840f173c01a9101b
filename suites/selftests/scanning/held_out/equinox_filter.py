import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


@eqx.filter_value_and_grad
def loss(model, x, y):
  return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_pmap(axis_name='num_devices', in_axes=(None, 0, 0, None), out_axes=(None, None, 0))
def make_step(model, x, y, opt_state):
  value, grads = loss(model, x, y)
  return jax.lax.pmean(grads, 'num_devices'), opt_state, value


def main(model, data, optim):
  opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))
  for x, y in data:
    grads, opt_state, value = make_step(model, x, y, opt_state)  # finds: calls-run-python
    updates, opt_state = optim.update(grads, opt_state)
    model = eqx.apply_updates(model, updates)
    print(value[0])  # finds: index-replicates-the-row
  return model
