"""Training steps and their state without a mapped function: plain jit over sharded arrays.

The state is one replicated array, so that nothing is stacked, unreplicated or indexed.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    examples,
    follow,
    square_loss,
)
from conformance.sections.idioms import state as mapped_state
from conformance.sections.idioms import training as mapped
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.jitted import ZERO, descend, descended, mean_loss, trained
from conformance.sections.idioms.models import once
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation


def summed_over_count(weights: Any, x: Any, y: Any) -> Any:
    """A step of descent by the sum of the rows' gradients, over the number of rows."""
    of_rows = jax.vmap(jax.value_and_grad(square_loss), in_axes=(None, 0, 0))
    losses, gradients = of_rows(weights, x, y)
    count = x.shape[0]
    return weights - RATE * gradients.sum(0) / count, losses.sum(0) / count


def whole_weights(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """in_shardings and out_shardings say what is replicated; the weights begin as NumPy's."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(mean_loss)(weights, x, y)

    copied, rows = whole(impl), split(impl)
    step = jax.jit(watch.traced(update), in_shardings=(copied, rows, rows), out_shardings=copied)
    weights = ZERO

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


def skipping(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A step is left out where the gradient is not finite, of whichever example."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(mean_loss)(weights, x, y)
        fine = jnp.isfinite(gradient).all()
        return jnp.where(fine, weights - RATE * gradient, weights), fine.astype(jnp.int32)

    step = jax.jit(watch.traced(update), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        x, y = examples(cluster, n)
        y[-1] = np.inf if n % 2 == 0 else y[-1]  # on the last device of all
        rows = (sharded(impl, cluster.mine(one)) for one in (x, y))
        weights, fine = step(weights, *rows)
        return weights, fine

    return turn


# --- The state ------------------------------------------------------------------------------------


def read(show: Any) -> Program:
    """Descent, of whose new weights and loss `show(weights, loss)` is returned."""

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        step = jax.jit(watch.traced(descend), out_shardings=whole(impl))
        weights = jax.device_put(ZERO, whole(impl))

        def turn(n: int) -> Any:
            nonlocal weights
            weights, loss = step(weights, *sharded_batch(impl, cluster, n))
            return show(weights, loss)

        return turn

    return program


def fetched(weights: Any, loss: Any) -> Any:
    """Both on the host."""
    return jax.device_get((weights, loss))


def off_the_shard(weights: Any, loss: Any) -> Any:
    """Both off this process's first shard."""
    return tuple(np.asarray(one.addressable_shards[0].data) for one in (weights, loss))


def logged(weights: Any, loss: Any) -> Any:
    """The loss as a Python number."""
    return weights, np.float32(float(loss))


def initialised_whole(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Make the weights under jit with a replicated out_sharding, and pass them on."""

    def initial(features: Any) -> Any:
        return jnp.arange(features.shape[-1], dtype=features.dtype) + 1

    copied, rows = whole(impl), split(impl)
    init = jax.jit(watch.traced(initial), out_shardings=copied)
    predict = jax.jit(
        watch.traced(lambda w, x: x @ w), in_shardings=(copied, rows), out_shardings=rows
    )

    def turn(n: int) -> Any:
        features, _ = sharded_batch(impl, cluster, n)
        return predict(init(features), features)

    return turn


def initialised_on_each(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Make the state under jit, replicated; the first step takes it as it is."""

    def initial(features: Any) -> Any:
        return jnp.zeros(features.shape[-1:], features.dtype)

    init = jax.jit(watch.traced(initial), out_shardings=whole(impl))
    step = jax.jit(watch.traced(descend), out_shardings=whole(impl))
    weights = init(sharded_batch(impl, cluster, 1)[0])

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


def saved(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """After each step the state is saved by NumPy, restored, and put on all devices again."""
    step = jax.jit(watch.traced(descend), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        file = io.BytesIO()
        np.savez(file, weights=jax.device_get(weights))
        file.seek(0)
        restored = jax.device_put(np.load(file)["weights"], whole(impl))
        weights, _ = step(restored, *sharded_batch(impl, cluster, n))
        return weights

    return turn


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}

TRAINING: Mapping[str, Idiom] = table(
    Idiom(
        "sum-over-count",
        "Gradients of each row summed and divided by the number of rows,",
        trained(summed_over_count, ZERO),
        descended,
        lambda place: DESCENT,
        gives=True,
    ),
    Idiom(
        "whole-weights",
        "Weights passed and returned with replicated in_shardings and out_shardings,",
        whole_weights,
        mapped.whole,
        lambda place: GRADIENT,
        mistakes={"descent by the sum over devices": mapped.descended_by_sums},
    ),
    Idiom(
        "skipping",
        "A step that is skipped if the gradient is not finite",
        skipping,
        once(mapped.descended_in_odd_steps),
        lambda place: GRADIENT,  # which any example spoils: no flag is needed
    ),
    Idiom(
        "fetched",
        "A replicated state that is fetched after each step",
        read(fetched),
        mapped_state.trained_on_the_host,
        lambda place: DESCENT,
        order=None,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "off-the-shard",
        "A replicated state whose first shard is read after each step",
        read(off_the_shard),
        mapped_state.trained_on_the_host,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom(
        "logged",
        "A loss logged as `float(loss)`",
        read(logged),
        descended,
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "initialised-whole",
        "Weights made under jit with a replicated out_sharding and passed on",
        initialised_whole,
        mapped_state.predicted,
    ),
    Idiom(
        "initialised-on-each",
        "Weights made under jit and trained",
        initialised_on_each,
        once(mapped_state.trained),
        lambda place: DESCENT,
    ),
    Idiom(
        "saved",
        "A state saved and restored as NumPy arrays",
        saved,
        once(mapped_state.trained),
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=TRAINING, left_out=of_the_mapped)
def train(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A training loop around a plain jit."""
    follow(impl, cluster, idiom)
