"""Batch statistics are averaged over devices before evaluation, as flax's examples do."""
import functools

import jax
import jax.numpy as jnp
from flax import jax_utils
from flax.training import common_utils, train_state


class TrainState(train_state.TrainState):
    batch_stats: object


cross_replica_mean = jax.pmap(lambda x: jax.lax.pmean(x, "x"), "x")


def sync_batch_stats(state):
    return state.replace(batch_stats=cross_replica_mean(state.batch_stats))  # finds: calls-run-python


def train_and_evaluate(state, train_step, eval_step, train_iter, eval_iter, steps):
    p_train_step = jax.pmap(train_step, axis_name="batch")
    p_eval_step = jax.pmap(eval_step, axis_name="batch")
    state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
    train_metrics = []
    for step, batch in zip(range(steps), train_iter):
        state, metrics = p_train_step(state, batch)  # finds: own-output-traced-again
        train_metrics.append(metrics)
        if step % 100 == 0:
            summary = common_utils.get_metrics(train_metrics)  # finds: index-replicates-the-row
            print(jax.tree.map(lambda x: x.mean(), summary))
            train_metrics = []
            state = sync_batch_stats(state)
            eval_metrics = []
            for batch in eval_iter():
                eval_metrics.append(p_eval_step(state, batch))
            eval_metrics = jax.device_get(eval_metrics)
            print(eval_metrics[0])
    return state
