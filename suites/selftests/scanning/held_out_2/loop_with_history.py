"""Keeps outputs in a list, a deque and a dict, and reads them later."""
import collections

import jax
import jax.numpy as jnp
import numpy as np


def run(xs):
    f = jax.pmap(lambda x: {"loss": jnp.mean(x), "norm": jnp.linalg.norm(x)})
    history = []
    recent = collections.deque(maxlen=10)
    by_step = {}
    for i, x in enumerate(xs):
        out = f(x)  # finds: calls-run-python
        history.append(out)
        recent.append(out["loss"])
        by_step[i] = out["norm"]
    print(history[0]["loss"])
    print(history[-1]["loss"][0])  # finds: index-replicates-the-row
    print([float(r[0]) for r in recent])  # finds: index-replicates-the-row
    print({i: float(v[0]) for i, v in by_step.items()})  # finds: index-replicates-the-row
    host = jax.device_get(history)
    print(host[0]["loss"][0], host[1:])
    stacked = jax.tree.map(lambda *a: np.stack(a), *history)
    return stacked["loss"][:, 0], stacked["norm"][0]
