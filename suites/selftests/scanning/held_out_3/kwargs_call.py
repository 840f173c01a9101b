"""Calls maps by keyword, with static options and results in a dataclass."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.tree_util.register_dataclass, data_fields=["loss", "grads"], meta_fields=[])
@dataclasses.dataclass
class Result:
    loss: jax.Array
    grads: dict

    def scalar(self):
        return float(self.loss[0])  # finds: index-replicates-the-row


@jax.pmap
def compute(w, x):
    loss, grads = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return Result(loss, {"w": grads})


def main(w, batches):
    results = [compute(w, x) for x in batches]  # finds: calls-run-python
    losses = [r.scalar() for r in results]
    last = results[-1].grads["w"][1:]  # finds: several-rows-gather-the-whole-array
    by_name = dataclasses.asdict(results[0])
    return losses[0], last, sorted(by_name)[0]
