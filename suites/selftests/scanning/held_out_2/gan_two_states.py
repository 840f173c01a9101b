"""A GAN with two train states, a step for each, and samples for the log."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax.training import train_state


class TrainState(train_state.TrainState):
    batch_stats: dict


@functools.partial(jax.pmap, axis_name="num_devices", donate_argnums=0)
def discriminator_step(d_state, g_state, real, key):
    fake = g_state.apply_fn({"params": g_state.params}, key)

    def loss_fn(params):
        a = d_state.apply_fn({"params": params}, real)
        b = d_state.apply_fn({"params": params}, fake)
        return jnp.mean(jax.nn.softplus(-a)) + jnp.mean(jax.nn.softplus(b))

    loss, grads = jax.value_and_grad(loss_fn)(d_state.params)
    grads = jax.lax.pmean(grads, "num_devices")
    return d_state.apply_gradients(grads=grads), jax.lax.pmean(loss, "num_devices")


@functools.partial(jax.pmap, axis_name="num_devices", donate_argnums=0)
def generator_step(g_state, d_state, key):
    def loss_fn(params):
        fake = g_state.apply_fn({"params": params}, key)
        return jnp.mean(jax.nn.softplus(-d_state.apply_fn({"params": d_state.params}, fake)))

    loss, grads = jax.value_and_grad(loss_fn)(g_state.params)
    grads = jax.lax.pmean(grads, "num_devices")
    return g_state.apply_gradients(grads=grads), jax.lax.pmean(loss, "num_devices")


@jax.pmap
def sample(g_state, key):
    return g_state.apply_fn({"params": g_state.params}, key)


def fit(g_state, d_state, data, key, writer):
    n = jax.local_device_count()
    for step, real in enumerate(data):
        key, k1, k2 = jax.random.split(key, 3)
        d_state, d_loss = discriminator_step(d_state, g_state, real, jax.random.split(k1, n))  # finds: own-output-traced-again
        g_state, g_loss = generator_step(g_state, d_state, jax.random.split(k2, n))  # finds: own-output-traced-again
        if step % 200 == 0:
            images = sample(g_state, jax.random.split(k1, n))
            grid = images[:4]  # finds: several-rows-gather-the-whole-array
            writer.image("samples", np.asarray(grid), step)
            writer.scalar("d_loss", d_loss[0], step)  # finds: index-replicates-the-row
            writer.scalar("g_loss", float(jnp.mean(g_loss)), step)
            writer.image("real", real[0], step)
    return g_state, d_state
