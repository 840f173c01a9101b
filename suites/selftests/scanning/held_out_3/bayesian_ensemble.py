"""Deep ensembles: a member per device, averaged predictions."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

members = jax.local_device_count()
tx = optax.adam(1e-2)


def init(key):
    params = {"w": jax.random.normal(key, (3,))}
    return params, tx.init(params)


def update(params, opt_state, x, y):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"] - y) ** 2))(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


p_init = jax.pmap(init)
p_update = jax.pmap(update, in_axes=(0, 0, None, None))
p_predict = jax.pmap(lambda p, x: x @ p["w"], in_axes=(0, None))


def fit(x, y, steps=100):
    params, opt_state = p_init(jax.random.split(jax.random.PRNGKey(0), members))
    for _ in range(steps):
        params, opt_state = p_update(params, opt_state, x, y)  # finds: calls-run-python
    return params


def predict(params, x):
    predictions = p_predict(params, x)
    mean, std = predictions.mean(0), predictions.std(0)
    worst = max(predictions, key=lambda p: float(jnp.abs(p - mean).sum()))  # finds: iteration-goes-through-the-host
    return mean, std, worst


def select(params, which):
    return jax.tree.map(lambda p: p[which], params)  # finds: index-replicates-the-row
