"""Fine-tunes with flax, a schedule, mixed precision and early stopping."""
import functools
import logging

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import dynamic_scale as dynamic_scale_lib
from flax.training import train_state


class TrainState(train_state.TrainState):
    dynamic_scale: dynamic_scale_lib.DynamicScale | None = None


def make_train_step(apply_fn, accum_steps):
    @functools.partial(jax.pmap, axis_name="batch", donate_argnums=(0,))
    def train_step(state, batch, rng):
        rng = jax.random.fold_in(rng, jax.lax.axis_index("batch"))

        def loss_fn(params, images, labels):
            logits = apply_fn({"params": params}, images, rngs={"dropout": rng}, train=True)
            return optax.softmax_cross_entropy(logits, labels).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params, batch["image"], batch["label"])
        grads = jax.lax.pmean(grads, "batch")
        loss = jax.lax.pmean(loss, "batch")
        return state.apply_gradients(grads=grads), loss

    return train_step


def learning_rate(config, total):
    warmup = optax.linear_schedule(0.0, config.lr, config.warmup)
    cosine = optax.cosine_decay_schedule(config.lr, total - config.warmup)
    return optax.join_schedules([warmup, cosine], [config.warmup])


def train(config, model, params, ds, evaluate):
    lr_fn = learning_rate(config, config.total)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(lr_fn, momentum=0.9))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    state = flax.jax_utils.replicate(state)  # finds: device-put-stackers-gone
    rngs = flax.jax_utils.replicate(jax.random.PRNGKey(config.seed))  # finds: device-put-stackers-gone
    step_fn = make_train_step(model.apply, config.accum)
    best, patience = np.inf, 0
    for step, batch in zip(range(config.total), ds):
        state, loss = step_fn(state, batch, rngs)  # finds: own-output-traced-again
        if step % config.eval_every == 0:
            current = float(loss[0])  # finds: index-replicates-the-row
            logging.info("%d lr %.2g loss %.3f", step, float(lr_fn(step)), current)
            best, patience = (current, 0) if current < best else (best, patience + 1)
            if patience > 5:
                break
            evaluate(state.params)
    return state
