"""One member per device: ensembles, sweeps, folds of a data set, populations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    BATCH,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    examples,
    follow,
    mapped_argument,
    mine,
    on_each,
    own_gradients,
    square_loss,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.sections.idioms.models import members, moved_on, shared, trained_members
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

WEIGHTS = np.array([1, -2, 3], np.float32)


def ensemble(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device trains its own member on the one batch; their predictions are averaged."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        new = weights - RATE * jax.grad(square_loss)(weights, x, y)
        return new, jax.lax.pmean(x @ new, "batch")

    step = impl.map(watch.traced(body), "batch", in_axes=(0, None, None))
    weights = mapped_argument(impl, cluster.mine(members(cluster)))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, prediction = step(weights, *shared(cluster, n))
        return weights, prediction

    return turn


def ensemble_predictions(place: Place, n: int) -> Any:
    """This process's members, and the mean of all members' predictions."""
    weights = trained_members(place, n)
    return mine(place, weights), on_each(place, shared(place, n)[0] @ weights.mean(0))


def sweep(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device trains at its own rate; the host picks the member that is best so far."""

    def body(weights: Any, rate: Any, x: Any, y: Any) -> Any:
        new = weights - rate * jax.grad(square_loss)(weights, x, y)
        return new, square_loss(new, x, y)

    step = impl.map(watch.traced(body), "batch", in_axes=(0, 0, None, None))
    weights = mapped_argument(impl, cluster.mine(members(cluster)))
    rates = mapped_argument(impl, cluster.mine(rates_of(cluster)[:, 0]))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, losses = step(weights, rates, *shared(cluster, n))
        best = int(np.argmin(np.asarray(losses)))
        return losses, np.asarray(weights[best])

    return turn


def rates_of(place: Place) -> Any:
    """Each member's rate."""
    return np.float32(1) / (np.arange(place.topology.devices, dtype=np.float32)[:, None] + 8)


def best_of_sweep(place: Place, n: int) -> Any:
    """Each member's loss, and the weights of the best."""
    weights = trained_members(place, n, rates_of(place))
    x, y = shared(place, n)
    losses = ((weights @ x.T - y) ** 2).mean(-1)
    return mine(place, losses), weights[losses.argmin()].astype(np.float32)


def folds(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Cross-validation: each device leaves its own fold out, and is scored on that."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        own = jax.lax.axis_index("batch")
        kept = jnp.arange(x.shape[0]) != own

        def loss(weights: Any) -> Any:
            return (((x @ weights - y) ** 2).mean(-1) * kept).sum() / kept.sum()

        new = weights - RATE * jax.grad(loss)(weights)
        return new, jax.lax.all_gather(square_loss(new, x[own], y[own]), "batch")

    step = impl.map(watch.traced(body), "batch", in_axes=(0, None, None))
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, scores = step(weights, *examples(cluster, n))
        return weights, scores

    return turn


def scores_of_folds(place: Place, n: int) -> Any:
    """Each fold's weights, and all folds' scores on each device."""
    count = place.topology.devices
    weights = np.zeros((count, WIDTH))
    scores: list[Any] = []
    for k in range(1, n + 1):
        x, y = examples(place, k)
        others = [np.delete(np.arange(count), d) for d in range(count)]
        gradients = [own_gradients(weights[d], x[o], y[o]).mean(0) for d, o in enumerate(others)]
        weights = weights - RATE * np.stack(gradients)
        scores = [((x[d] @ weights[d] - y[d]) ** 2).mean() for d in range(count)]
    return mine(place, weights), on_each(place, scores)


def ring(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Members train each on its own data, and then move on to the next device."""
    count = len(cluster.devices)

    def body(weights: Any, x: Any, y: Any) -> Any:
        new = weights - RATE * jax.grad(square_loss)(weights, x, y)
        return jax.lax.ppermute(new, "batch", [(d, (d + 1) % count) for d in range(count)])

    step = impl.map(watch.traced(body), "batch")
    weights = mapped_argument(impl, cluster.mine(members(cluster)))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *batch(impl, cluster, n))
        return weights

    return turn


def population(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The least fit member takes the weights of the fittest, after all were gathered."""

    def body(weights: Any) -> Any:
        fitness = jax.lax.all_gather(weights.sum(), "batch")
        everyone = jax.lax.all_gather(weights, "batch")
        worst = fitness.argmin() == jax.lax.axis_index("batch")
        return jnp.where(worst, everyone[fitness.argmax()], weights) + 1

    step = impl.map(watch.traced(body), "batch")
    weights = mapped_argument(impl, cluster.rows(WIDTH))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights)
        return weights

    return turn


def survived(place: Place, n: int) -> Any:
    """This process's members."""
    weights = place.all_rows(WIDTH).copy()
    for _ in range(n):
        fitness = weights.sum(-1)
        weights[fitness.argmin()] = weights[fitness.argmax()]
        weights = weights + 1
    return mine(place, weights)


def averaged_at_times(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device trains alone; a second map averages the weights after each other step."""

    def update(weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(square_loss)(weights, x, y)

    step = impl.map(watch.traced(update), "batch")
    average = impl.map(watch.traced(lambda weights: jax.lax.pmean(weights, "batch")), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *batch(impl, cluster, n))
        if n % 2 == 1:
            weights = average(weights)
        return weights

    return turn


def descended_alone(place: Place, n: int) -> Any:
    """Descent on each device's own loss, averaged after odd steps."""
    weights = np.zeros((place.topology.devices, WIDTH))
    for k in range(1, n + 1):
        x, y = examples(place, k)
        own = [own_gradients(w, x[[d]], y[[d]])[0] for d, w in enumerate(weights)]
        weights = weights - RATE * np.stack(own)
        if k % 2 == 1:
            weights = np.broadcast_to(weights.mean(0), weights.shape)
    return mine(place, weights)


def gathered(elements: int) -> Any:
    """An all-gather of so many elements of each device, which is as large as all of them."""
    return lambda place: {"all-gather": place.topology.devices * elements * FLOAT_BYTES}


ENSEMBLES: Mapping[str, Idiom] = table(
    Idiom(
        "ensemble",
        "Members trained on one batch, their predictions averaged,",
        ensemble,
        ensemble_predictions,
        lambda place: {"all-reduce": BATCH * FLOAT_BYTES},
        topologies=ONE_AND_TWO,
    ),
    Idiom(
        "sweep",
        "A sweep over learning rates, whose best weights the host takes by `weights[best]`",
        sweep,
        best_of_sweep,
        compiles=True,  # for legacy an index of each device is a program of its own
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "folds",
        "Cross-validation with a fold on each device",
        folds,
        scores_of_folds,
        gathered(1),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "ring",
        "Members that move on to the next device after each step",
        ring,
        moved_on,
        lambda place: {"collective-permute": WIDTH * FLOAT_BYTES},
        topologies=ONE_AND_TWO,
    ),
    Idiom(
        "averaging-at-times",
        "Devices that train independently, with weights averaged by a second mapped function,",
        averaged_at_times,
        descended_alone,
        lambda place: {"all-reduce": WIDTH * FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "population",
        "A population in which the fittest replaces the least fit",
        population,
        survived,
        gathered(1 + WIDTH),
        topologies=ONE_PROCESS,
    ),
)


@in_a_loop().family("idioms.ensembles.{idiom}", idiom=ENSEMBLES, claim="pmap-silence.ensembles")
def spread(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop in which each device has a member."""
    follow(impl, cluster, idiom)
