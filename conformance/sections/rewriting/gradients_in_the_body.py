"""Gradients taken in the mapped body, and data-parallel training steps made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.sections.rewriting import words
from conformance.sections.rewriting.gradients import (
    CHECKS,
    PASSINGS,
    WEIGHTS,
    Check,
    Passing,
    gradients,
    loss,
    mean_gradient,
)
from conformance.spec.clause import devices
from conformance.spec.comparing import Model
from conformance.spec.expectation import returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described, text_of
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.gradient-inside-the-map"
INSIDE = "rewriting.gradients.inside"
CAST = f"{INSIDE}.cast"

RATE = np.float32(2**-6)
STEPS = 3

# Possible results on a device, from all devices' own gradients and their number.
Holding = Callable[[NDArray[Any]], NDArray[Any]]

OWN = "the device's own gradient"
MEAN = "the mean over all devices"
SUM = "the sum over all devices"
OWN_TIMES = "the device's own gradient times the number of devices"

HELD: Mapping[str, Holding] = {
    OWN: lambda g: g,
    MEAN: lambda g: np.broadcast_to(g.mean(0), g.shape),
    SUM: lambda g: np.broadcast_to(g.sum(0), g.shape),
    OWN_TIMES: lambda g: g * len(g),
    "the device's own gradient over the number of devices": lambda g: g / len(g),
    "the mean over all devices over their number": lambda g: np.broadcast_to(
        g.mean(0) / len(g), g.shape
    ),
    "the sum over all devices times their number": lambda g: np.broadcast_to(
        g.sum(0) * len(g), g.shape
    ),
}


def holds(name: str) -> Expectation:
    """Each device holds the named one of `HELD`."""

    def model(holding: Holding) -> Model:
        return lambda place: place.mine(holding(gradients(place))).astype(np.float32)

    mistakes = {other: model(holding) for other, holding in HELD.items() if other != name}
    return twice(returns(model(HELD[name]), text=name, mistakes=mistakes))


# --- One gradient


def own_gradient(weights: Any, row: Any) -> Any:
    """No collective at all."""
    return jax.grad(loss)(weights, row)


def sum_of_gradients(weights: Any, row: Any) -> Any:
    """The devices' own gradients, summed."""
    return jax.lax.psum(jax.grad(loss)(weights, row), "i")


def gradient_of_mean(weights: Any, row: Any) -> Any:
    """The loss is averaged first."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, row), "i"))(weights)


def gradient_of_sum(weights: Any, row: Any) -> Any:
    """The loss is summed first."""
    return jax.grad(lambda w: jax.lax.psum(loss(w, row), "i"))(weights)


def mean_gradient_of_mean(weights: Any, row: Any) -> Any:
    """Both are averaged, which in legacy comes to the same as averaging once."""
    return jax.lax.pmean(gradient_of_mean(weights, row), "i")


@dataclass(frozen=True, slots=True)
class Taken:
    """The body's result for parameters and a row, and which of `HELD` it is."""

    key: str
    body: Callable[[Any, Any], Any]
    held: str


TAKEN: Mapping[str, Taken] = table(
    Taken("own", own_gradient, OWN),
    Taken("pmean-of-gradient", mean_gradient, MEAN),
    Taken("psum-of-gradient", sum_of_gradients, SUM),
    Taken("gradient-of-pmean", gradient_of_mean, OWN),
    Taken("gradient-of-psum", gradient_of_sum, OWN_TIMES),
    Taken("pmean-of-gradient-of-pmean", mean_gradient_of_mean, MEAN),
)

CAST_HELPS = ("own", "pmean-of-gradient")  # it is the remedy for what the check does to these
WIDER = "pmean-of-gradient"  # what is run in two processes too


def asked(what: Taken, passed: Passing, check: Check) -> bool:
    """Every choice, but that the cast is for some gradients, and for the check, alone."""
    return not passed.cast or (check.vma and what.key in CAST_HELPS)


def fact_of(what: Taken, passed: Passing, check: Check) -> str:
    """Passed or closed over makes no difference to whole parameters; a copy of one's own does."""
    lies = "whole" if passed.axis is None else "stacked"
    return CAST if passed.cast else check.fact(INSIDE, f"{what.key}-{lies}")


@family(
    "rewriting.gradients.{what}.{passed}{check}",
    what=TAKEN,
    passed=PASSINGS,
    check=CHECKS,
    only=asked,
    claim=lambda check: check.claim(CLAIM),
    title=lambda what, passed, check: (
        f"In the mapped body: {words(what)}, the parameters {passed.text}{check.said}"
    ),
    fact=fact_of,
    needs=devices(2),
    topologies=lambda what: ONE_AND_SEVERAL if what.key == WIDER else ONE_AND_FOUR,
    expect=lambda what, passed, check: passed.columns(check, holds(what.held)),
)
def in_the_body(
    impl: Implementation, cluster: Cluster, what: Taken, passed: Passing, check: Check
) -> None:
    """A gradient taken in the body, one result per device."""
    rows = impl.given(cluster.rows(3))
    if passed.closed:
        cluster.twice(impl.map(lambda x: what.body(WEIGHTS, x), check_vma=check.vma), rows)
        return

    def body(weights: Any, row: Any) -> Any:
        return what.body(passed.in_body(weights), row)

    function = impl.map(body, in_axes=(passed.axis, 0), check_vma=check.vma)
    cluster.twice(function, passed.weights(impl, cluster), rows)


# --- The training step


@described("the weights after the steps, from the gradient of the mean loss over all devices")
def trained(place: Place, factor: float = 1) -> Any:
    weights, rows = WEIGHTS, place.all_rows(3) / np.float32(8)
    for _ in range(STEPS):
        step = ((rows @ weights)[:, None] * rows).mean(0)
        weights = (weights - RATE * np.float32(factor) * step).astype(np.float32)
    return weights


@described("the weights after steps that many times too long")
def trained_with_sum(place: Place) -> Any:
    return trained(place, place.topology.devices)


def training(passed: Passing) -> Expectation:
    """The trained weights, whole or one copy per device."""

    def on_each_device(model: Model) -> Model:
        if passed.axis is None:
            return model
        return lambda place: np.broadcast_to(model(place), (place.topology.devices_per_process, 3))

    mistake = "trained with the sum of the gradients in place of their mean"
    return twice(
        returns(
            on_each_device(trained),
            text=text_of(trained),
            mistakes={mistake: on_each_device(trained_with_sum)},
        )
    )


@family(
    "rewriting.gradients.training-step.{passed}{check}",
    passed={key: PASSINGS[key] for key in ("unmapped", "stacked", "cast")},
    check=CHECKS,
    only=lambda passed, check: check.vma or not passed.cast,
    claim=lambda check: check.claim(CLAIM),
    title="Three data-parallel training steps, the parameters {passed.text}{check.said}",
    fact=lambda passed, check: (
        CAST if passed.cast else check.fact(INSIDE, f"training-step-{passed.key}")
    ),
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    expect=lambda passed, check: passed.columns(check, training(passed)),
)
def train(impl: Implementation, cluster: Cluster, passed: Passing, check: Check) -> None:
    """Gradient descent whose every step averages the devices' gradients by a pmean."""

    def step(weights: Any, row: Any) -> Any:
        return weights - RATE * mean_gradient(passed.in_body(weights), row)

    axis = passed.axis
    function = impl.map(step, in_axes=(axis, 0), out_axes=axis, check_vma=check.vma)
    rows = impl.given(cluster.rows(3) / np.float32(8))
    weights = passed.weights(impl, cluster)

    def run() -> Any:
        state = weights
        for _ in range(STEPS):
            state = jax.block_until_ready(function(state, rows))
        return state

    cluster.twice(run)
