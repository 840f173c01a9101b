"""Data-parallel training steps: each device has its part of the batch, gradients are averaged."""

from __future__ import annotations

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
    Turn,
    Watch,
    batch,
    copies,
    descent,
    examples,
    follow,
    mapped_argument,
    on_each,
    own_gradients,
    square_loss,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.sections.idioms.models import KEPT, MICRO, MOST
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, Place
from conformance.worker.protocols import Cluster, Implementation


def averaged_gradients(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Weights replicated by hand; each step averages the gradient and the loss by pmean."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        loss, gradient = jax.value_and_grad(square_loss)(weights, x, y)
        gradient = jax.lax.pmean(gradient, "batch")
        return weights - RATE * gradient, jax.lax.pmean(loss, "batch")

    step = impl.map(watch.traced(update), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return weights, loss

    return turn


def descended(place: Place, n: int) -> Any:
    """Gradient descent on the mean of all devices' losses."""
    weights, loss = descent(place, n)
    return on_each(place, weights), on_each(place, loss)


def summed_over_count(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The number of devices is psum(1), and the mean a psum over it."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        loss, gradient = jax.value_and_grad(square_loss)(weights, x, y)
        count = jax.lax.psum(1, "batch")
        gradient, loss = jax.lax.psum((gradient, loss), "batch")
        return weights - RATE * gradient / count, loss / count

    step = impl.map(watch.traced(update), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return weights, loss

    return turn


def whole_weights(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The weights are one array, in and out: in_axes and out_axes are None for them."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), "batch")
        return weights - RATE * gradient

    step = impl.map(watch.traced(update), "batch", in_axes=(None, 0, 0), out_axes=None)
    weights = np.zeros(WIDTH, np.float32)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *batch(impl, cluster, n))
        return weights

    return turn


def whole(place: Place, n: int) -> Any:
    """The weights of `descended`, once."""
    return descent(place, n)[0].astype(np.float32)


def descended_by_sums(place: Place, n: int) -> Any:
    """Gradient descent by the sum of all devices' gradients."""
    return descent(place, n, RATE * place.topology.devices)[0].astype(np.float32)


def momentum(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The state is a dict of weights, momentum and a step counter, and is donated."""

    def update(state: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(state["weights"], x, y), "batch")
        moment = KEPT * state["moment"] + gradient
        return {
            "moment": moment,
            "step": state["step"] + 1,
            "weights": state["weights"] - RATE * moment,
        }

    step = impl.map(watch.traced(update), "batch", donate_argnums=(0,))
    zero = np.zeros(WIDTH, np.float32)
    state = copies(impl, cluster, {"moment": zero, "step": np.int32(0), "weights": zero})
    state = impl.map(lambda one: one)(state)  # on its devices before the first step

    def turn(n: int) -> Any:
        nonlocal state
        state = step(watch.gives(state), *batch(impl, cluster, n))
        return state

    return turn


def with_momentum(place: Place, n: int) -> Any:
    """Descent with momentum."""
    weights, moment = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        moment = KEPT * moment + own_gradients(weights, *examples(place, k)).mean(0)
        weights = weights - RATE * moment
    counter = np.full(place.topology.devices_per_process, n, np.int32)
    return {"moment": on_each(place, moment), "step": counter, "weights": on_each(place, weights)}


def accumulated(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A scan over parts of the device's batch sums their gradients, which are averaged once."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        def part(total: Any, one: Any) -> Any:
            loss, gradient = jax.value_and_grad(square_loss)(weights, *one)
            return (total[0] + loss, total[1] + gradient), None

        parts = x.reshape(MICRO, -1, WIDTH), y.reshape(MICRO, -1)
        zero = (x.sum() * 0, weights * 0)  # varying, as the sums are
        (loss, gradient), _ = jax.lax.scan(part, zero, parts)
        loss, gradient = jax.lax.pmean((loss / MICRO, gradient / MICRO), "batch")
        return weights - RATE * gradient, loss

    step = impl.map(watch.traced(update), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return weights, loss

    return turn


def clipped(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The averaged gradient is clipped to a norm, and the norm is a metric."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), "batch")
        norm = jnp.sqrt((gradient**2).sum())
        gradient = gradient * jnp.minimum(1.0, MOST / norm)
        return weights - RATE * gradient, norm

    step = impl.map(watch.traced(update), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, norm = step(weights, *batch(impl, cluster, n))
        return weights, norm

    return turn


def descended_clipped(place: Place, n: int) -> Any:
    """Descent by gradients of at most the norm."""
    weights, norm = np.zeros(WIDTH), 0.0
    for k in range(1, n + 1):
        gradient = own_gradients(weights, *examples(place, k)).mean(0)
        norm = np.sqrt((gradient**2).sum())
        weights = weights - RATE * gradient * min(1.0, MOST / norm)
    return on_each(place, weights), on_each(place, norm)


def skipping(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A step is left out by all devices where the gradient of any is not finite."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(square_loss)(weights, x, y)
        fine = jax.lax.pmin(jnp.isfinite(gradient).all().astype(jnp.int32), "batch")
        gradient = jax.lax.pmean(gradient, "batch")
        return jnp.where(fine == 1, weights - RATE * gradient, weights), fine

    step = impl.map(watch.traced(update), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        x, y = examples(cluster, n)
        y[-1] = np.inf if n % 2 == 0 else y[-1]  # on the last device of all
        weights, fine = step(
            weights, mapped_argument(impl, cluster.mine(x)), mapped_argument(impl, cluster.mine(y))
        )
        return weights, fine

    return turn


def descended_in_odd_steps(place: Place, n: int) -> Any:
    """Descent in each other step."""
    weights = np.zeros(WIDTH)
    for k in range(1, n + 1, 2):
        weights = weights - RATE * own_gradients(weights, *examples(place, k)).mean(0)
    fine = np.full(place.topology.devices_per_process, n % 2, np.int32)
    return on_each(place, weights), fine


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}

TRAINING: Mapping[str, Idiom] = table(
    Idiom(
        "pmean",
        "Gradients averaged by pmean, replicated weights,",
        averaged_gradients,
        descended,
        lambda place: DESCENT,
    ),
    Idiom(
        "psum-over-count",
        "Gradients summed by psum and divided by psum(1),",
        summed_over_count,
        descended,
        lambda place: DESCENT,
    ),
    Idiom(
        "whole-weights",
        "Weights passed with in_axes=None and returned with out_axes=None,",
        whole_weights,
        whole,
        lambda place: GRADIENT,
        mistakes={"descent by the sum over devices": descended_by_sums},
    ),
    Idiom(
        "momentum",
        "A dict of weights, momentum and a counter, donated,",
        momentum,
        with_momentum,
        lambda place: GRADIENT,
        gives=True,
    ),
    Idiom(
        "accumulation",
        "Gradients accumulated by a scan over parts of the batch",
        accumulated,
        descended,
        lambda place: DESCENT,
    ),
    Idiom(
        "clipping",
        "Gradients clipped by their norm after the pmean",
        clipped,
        descended_clipped,
        lambda place: GRADIENT,
    ),
    Idiom(
        "skipping",
        "A step that all devices skip if one has a gradient that is not finite",
        skipping,
        descended_in_odd_steps,
        lambda place: {"all-reduce": (WIDTH + 1) * FLOAT_BYTES},
    ),
)


@in_a_loop().family(
    "idioms.training.{idiom}",
    idiom=TRAINING,
    claim="pmap-silence.training-step",
    topologies=ONE_AND_TWO,
)
def train(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A training loop."""
    follow(impl, cluster, idiom)
