"""Members of an ensemble without a mapped function: a vmap in a plain jit over sharded arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    examples,
    follow,
    square_loss,
)
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.ensembles import (
    best_of_sweep,
    descended_alone,
    rates_of,
    scores_of_folds,
    survived,
)
from conformance.sections.idioms.models import members, of_all, reduced, shared
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation


def sweep(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each member trains at its own rate; the host picks the member that is best so far."""

    def of_one(weights: Any, rate: Any, x: Any, y: Any) -> Any:
        new = weights - rate * jax.grad(square_loss)(weights, x, y)
        return new, square_loss(new, x, y)

    body = jax.vmap(of_one, in_axes=(0, 0, None, None))
    step = jax.jit(watch.traced(body), out_shardings=split(impl))
    weights = sharded(impl, cluster.mine(members(cluster)))
    rates = sharded(impl, cluster.mine(rates_of(cluster)[:, 0]))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, losses = step(weights, rates, *shared(cluster, n))
        best = int(np.argmin(np.asarray(losses)))
        return losses, np.asarray(weights)[best]

    return turn


def folds(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Cross-validation: each member leaves its own fold out, and is scored on that."""
    count = cluster.topology.devices

    def of_one(weights: Any, own: Any, x: Any, y: Any) -> Any:
        kept = jnp.arange(count) != own

        def loss(weights: Any) -> Any:
            return (((x @ weights - y) ** 2).mean(-1) * kept).sum() / kept.sum()

        new = weights - RATE * jax.grad(loss)(weights)
        return new, square_loss(new, x[own], y[own])

    def body(weights: Any, x: Any, y: Any) -> Any:
        return jax.vmap(of_one, in_axes=(0, 0, None, None))(weights, jnp.arange(count), x, y)

    step = jax.jit(watch.traced(body), out_shardings=(split(impl), whole(impl)))
    weights = sharded(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, scores = step(weights, *examples(cluster, n))
        return weights, scores

    return turn


def scores_once(place: Place, n: int) -> Any:
    """Each fold's weights, and all folds' scores."""
    weights, scores = scores_of_folds(place, n)
    return weights, scores[0]


def population(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The least fit member takes the weights of the fittest, after all were gathered."""

    def body(weights: Any) -> Any:
        everyone = jax.lax.with_sharding_constraint(weights, whole(impl))
        fitness = everyone.sum(-1)
        worst = jnp.arange(len(fitness)) == fitness.argmin()
        return jnp.where(worst[:, None], everyone[fitness.argmax()], weights) + 1

    step = jax.jit(watch.traced(body), out_shardings=split(impl))
    weights = sharded(impl, cluster.rows(WIDTH))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights)
        return weights

    return turn


def averaged_at_times(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each member trains alone; a second jit averages the weights after each other step."""

    def of_one(weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(square_loss)(weights, x, y)

    def mean_of_all(weights: Any) -> Any:
        return jnp.broadcast_to(weights.mean(0), weights.shape)

    step = jax.jit(watch.traced(jax.vmap(of_one)), out_shardings=split(impl))
    average = jax.jit(watch.traced(mean_of_all), out_shardings=split(impl))
    weights = sharded(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *sharded_batch(impl, cluster, n))
        if n % 2 == 1:
            weights = average(weights)
        return weights

    return turn


ENSEMBLES: Mapping[str, Idiom] = table(
    Idiom(
        "sweep",
        "A sweep over learning rates, whose best weights the host takes,",
        sweep,
        best_of_sweep,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "folds",
        "Cross-validation with a fold in each row",
        folds,
        scores_once,
        of_all(1),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "averaging-at-times",
        "Members that train independently, with weights averaged by a second function,",
        averaged_at_times,
        descended_alone,
        reduced(WIDTH),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "population",
        "A population in which the fittest replaces the least fit",
        population,
        survived,
        of_all(WIDTH),
        topologies=ONE_PROCESS,
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=ENSEMBLES, left_out=of_the_mapped)
def spread(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit in which each row is a member."""
    follow(impl, cluster, idiom)
