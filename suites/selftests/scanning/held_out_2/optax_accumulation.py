"""Gradient accumulation with optax.MultiSteps, and by hand."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

ACCUM = 4
tx = optax.MultiSteps(optax.adamw(3e-4), every_k_schedule=ACCUM)


def loss_fn(params, batch):
    return jnp.mean((batch["x"] @ params - batch["y"]) ** 2)


def micro(params, batch):
    def one(carry, mb):
        loss, grads = jax.value_and_grad(loss_fn)(params, mb)
        return jax.tree.map(jnp.add, carry, (loss, grads)), None

    split = jax.tree.map(lambda x: x.reshape(ACCUM, -1, *x.shape[1:]), batch)
    zero = (jnp.zeros(()), jnp.zeros_like(params))
    total, _ = jax.lax.scan(one, zero, split)
    return jax.tree.map(lambda x: x / ACCUM, total)


def update(params, opt_state, batch):
    loss, grads = micro(params, batch)
    grads = jax.lax.pmean(grads, axis_name="data")
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


update_p = jax.pmap(update, "data", donate_argnums=(0, 1))


def main(loader, params):
    devices = jax.local_devices()
    opt_state = jax.device_put_replicated(tx.init(params), devices)  # finds: device-put-stackers-gone
    params = jax.device_put_replicated(params, devices)  # finds: device-put-stackers-gone
    losses = []
    for batch in loader:
        params, opt_state, loss = update_p(params, opt_state, batch)  # finds: own-output-traced-again
        losses.append(loss)
    losses = jax.device_get(losses)
    print(losses[0], losses[-1][0], np.stack(losses)[:, 0])
    return params[0]  # finds: index-replicates-the-row
