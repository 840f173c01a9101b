"""The old state is looked at after the call that donates it."""
import jax
import jax.numpy as jnp


def make_update(tx):
  def update(params, opt_state, batch):
    grads = jax.grad(lambda p: jnp.mean(batch @ p))(params)
    updates, opt_state = tx.update(jax.lax.pmean(grads, 'dp'), opt_state)
    return params + updates, opt_state
  return jax.pmap(update, axis_name='dp', donate_argnums=(0, 1))


def fit(tx, params, opt_state, batches):
  update = make_update(tx)
  for batch in batches:
    new_params, opt_state = update(params, opt_state, batch)  # finds: own-output-traced-again
    change = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), new_params, params)  # finds: deleted-argument-other-error
    params = new_params
  return params, change
