"""Retries a step that failed; its state is donated."""
import functools
import logging

import jax
import jax.numpy as jnp


@functools.partial(jax.pmap, axis_name="i", donate_argnums=(0,))
def step(state, batch):
    return jax.tree.map(lambda s: s + jax.lax.pmean(batch.mean(), "i"), state)


@functools.partial(jax.pmap, axis_name="i")
def safe_step(state, batch):
    return jax.tree.map(lambda s: s + jax.lax.pmean(batch.mean(), "i"), state)


def train_with_retry(state, batches):
    for batch in batches:
        try:
            new_state = step(state, batch)  # finds: calls-run-python
        except RuntimeError:
            logging.exception("retrying")
            new_state = step(state, batch)  # finds: deleted-argument-other-error
        state = new_state
    return state


def compare(state, batch):
    a = safe_step(state, batch)
    b = safe_step(state, batch)
    return jax.tree.map(jnp.subtract, a, b)


def once(state, batch):
    state = step(state, batch)
    return state
