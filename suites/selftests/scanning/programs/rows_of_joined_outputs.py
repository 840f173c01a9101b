import dataclasses

import jax
import jax.numpy as jnp

features = jax.pmap(lambda x: jnp.tanh(x))
mean = jax.pmap(lambda x: jax.lax.pmean(x, "x"), axis_name="x")


def collect(batches, count):
    found = []
    for batch in batches:
        out = features(batch)  # finds: calls-run-python
        found.append(jnp.reshape(out, (-1, out.shape[-1])))
    joined = jnp.concatenate(found, axis=0)
    return joined[:count]  # finds: several-rows-gather-the-whole-array


def steps(batches):
    losses = jnp.stack([b.mean() for b in batches])
    return losses[0], jnp.concatenate(batches)[:3]


def synced(state):
    state = dataclasses.replace(state, mean=mean(state.mean))
    return state


def saved(state):
    state = features(state)
    state = dataclasses.replace(state, step=0)
    return jax.device_get(jax.tree.map(lambda x: x[0], state))  # finds: index-replicates-the-row
