"""A frozen dataclass holds the compiled functions."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Compiled:
    init: Callable[..., Any]
    step: Callable[..., Any]
    metric: Callable[..., Any]


def compile_all(model, tx) -> Compiled:
    def init(key, x):
        params = model.init(key, x)
        return params, tx.init(params)

    def step(params, opt_state, x):
        grads = jax.grad(lambda p: jnp.mean(model.apply(p, x)))(params)
        updates, opt_state = tx.update(jax.lax.pmean(grads, "n"), opt_state)
        return jax.tree.map(jnp.add, params, updates), opt_state

    return Compiled(
        init=jax.pmap(init, axis_name="n", in_axes=(None, 0)),
        step=jax.pmap(step, axis_name="n"),
        metric=jax.jit(lambda x: jnp.mean(x)),
    )


def run(compiled: Compiled, data, key):
    params, opt_state = compiled.init(key, data[0])
    for x in data:
        params, opt_state = compiled.step(params, opt_state, x)  # finds: calls-run-python
    norms = jax.tree.map(lambda p: np.linalg.norm(np.asarray(p)[0]), params)
    kernel = params["kernel"][0]  # finds: index-replicates-the-row
    return norms, kernel, compiled.metric(data[0])[None][0]
