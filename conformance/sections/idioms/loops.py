"""Loops in a mapped body, chains of unequal length, an inner vmap with its own axis, and
callbacks.
"""

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
    Program,
    Turn,
    Watch,
    batch,
    descend,
    examples,
    follow,
    mapped_argument,
    mine,
    on_each,
    own_gradients,
    own_losses,
    square_loss,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.sections.idioms.models import LIMIT, grown
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation

UNROLL = 2  # steps of training in one call


def unrolled_examples(place: Place, n: int) -> tuple[Any, Any]:
    """The examples of each step of call `n`, after the devices' axis."""
    parts = [examples(place, UNROLL * n + k) for k in range(UNROLL)]
    return np.stack([x for x, _ in parts], 1), np.stack([y for _, y in parts], 1)


def unrolled(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """Return this process's part of several batches, as a mapped argument."""
    features, targets = unrolled_examples(cluster, n)
    return mapped_argument(impl, cluster.mine(features)), mapped_argument(
        impl, cluster.mine(targets)
    )


def scanned(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Several steps of training in one call, by a scan with the pmean in its body."""
    update = descend()

    def body(weights: Any, x: Any, y: Any) -> Any:
        def one(weights: Any, part: Any) -> Any:
            new, loss = update(weights, *part)
            return new, loss

        weights, losses = jax.lax.scan(one, weights, (x, y))
        return weights, losses

    step = impl.map(watch.traced(body), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, losses = step(weights, *unrolled(impl, cluster, n))
        return weights, losses

    return turn


def descended(place: Place, n: int) -> Any:
    """The weights after so many calls, and the losses of the last."""
    weights = np.zeros(WIDTH)
    losses: list[Any] = []
    for call in range(1, n + 1):
        losses = []
        for k in range(UNROLL):
            x, y = examples(place, UNROLL * call + k)
            losses.append(own_losses(weights, x, y).mean())
            weights = weights - RATE * own_gradients(weights, x, y).mean(0)
    return on_each(place, weights), on_each(place, losses)


def counted_loop(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Several steps of training in one call, by a fori_loop that indexes the batch."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        def one(k: Any, weights: Any) -> Any:
            gradient = jax.grad(square_loss)(weights, x[k], y[k])
            return weights - RATE * jax.lax.pmean(gradient, "batch")

        return jax.lax.fori_loop(0, UNROLL, one, weights)

    step = impl.map(watch.traced(body), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *unrolled(impl, cluster, n))
        return weights

    return turn


def weights_alone(place: Place, n: int) -> Any:
    """The weights of `descended`."""
    return descended(place, n)[0]


def summed_metrics(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A Python loop over the unroll keeps a list of metrics, whose sums are averaged once."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        metrics = []
        for k in range(UNROLL):
            error = x[k] @ weights - y[k]
            metrics.append({"error": jnp.abs(error).sum(), "square": (error**2).sum()})
        total = jax.tree.map(lambda *values: sum(values), *metrics)
        return jax.lax.pmean(total, "batch")

    evaluate = impl.map(watch.traced(body), "batch", in_axes=(None, 0, 0))
    weights = np.array([1, -2, 3], np.float32)
    return lambda n: evaluate(weights, *unrolled(impl, cluster, n))


def sums_of_metrics(place: Place, n: int) -> Any:
    """The mean over devices of each sum."""
    x, y = unrolled_examples(place, n)
    error = x @ np.array([1, -2, 3]) - y
    of_metric = {"error": np.abs(error), "square": error**2}
    return {key: on_each(place, one.sum((1, 2)).mean()) for key, one in of_metric.items()}


def chains(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device runs its own chain until it is done: no two loops are of one length."""

    def body(state: Any) -> Any:
        def unfinished(carry: Any) -> Any:
            return carry[0] < LIMIT

        def grow(carry: Any) -> Any:
            return carry[0] * 2 - carry[0] / 2, carry[1] + 1

        return jax.lax.while_loop(unfinished, grow, (state, (state * 0).astype(jnp.int32)))

    sample = impl.map(watch.traced(body), "batch")
    return lambda n: sample(mapped_argument(impl, cluster.rows() * n))


def over_both(gradient: Any) -> Any:
    """Average over the axes of the mapped function and of the vmap at once."""
    return jax.lax.pmean(gradient, ("batch", "example"))


def one_by_one(gradient: Any) -> Any:
    """Average over the vmap's axis, then over the mapped axis."""
    return jax.lax.pmean(jax.lax.pmean(gradient, "example"), "batch")


def nested(mean: Body, **options: Any) -> Program:
    """Descent by such a mean over the devices and over each device's examples."""

    def two_axes(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        def of_one(weights: Any, x: Any, y: Any) -> Any:
            gradient = jax.grad(lambda w: (x @ w - y) ** 2)(weights)
            return weights - RATE * mean(gradient)

        def body(weights: Any, x: Any, y: Any) -> Any:
            new = jax.vmap(of_one, in_axes=(None, 0, 0), axis_name="example")(weights, x, y)
            return new[0]

        step = impl.map(watch.traced(body), "batch", **options)
        weights = zeros(impl, cluster)

        def turn(n: int) -> Any:
            nonlocal weights
            weights = step(weights, *batch(impl, cluster, n))
            return weights

        return turn

    return two_axes


def descended_by_examples(place: Place, n: int) -> Any:
    """Descent on the mean over all examples of all devices."""
    weights = np.zeros(WIDTH)
    for k in range(1, n + 1):
        weights = weights - RATE * own_gradients(weights, *examples(place, k)).mean(0)
    return on_each(place, weights)


def logged(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device logs its loss to the host by a callback, from within the step."""
    lines: list[tuple[int, float]] = []

    def body(weights: Any, x: Any, y: Any) -> Any:
        loss = square_loss(weights, x, y)
        index = jax.lax.axis_index("batch")
        jax.debug.callback(lambda i, one: lines.append((int(i), float(one))), index, loss)
        return jax.lax.pmean(loss, "batch")

    evaluate = impl.map(watch.traced(body), "batch", in_axes=(None, 0, 0))
    weights = np.array([1, -2, 3], np.float32)

    def turn(n: int) -> Any:
        lines.clear()
        mean = evaluate(weights, *batch(impl, cluster, n))
        jax.block_until_ready(mean)
        jax.effects_barrier()
        return mean, np.array(sorted(lines), np.float32)

    return turn


def log_of_losses(place: Place, n: int) -> Any:
    """The mean loss, and each of this process's devices' index and loss."""
    losses = own_losses(np.array([1, -2, 3]), *examples(place, n))
    lines = np.stack([np.arange(len(losses)), losses], -1)
    return on_each(place, losses.mean()), mine(place, lines)


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}

LOOPS: Mapping[str, Idiom] = table(
    Idiom(
        "scan",
        "Several steps of training in a scan",
        scanned,
        descended,
        lambda place: {"all-reduce": (WIDTH + 1) * FLOAT_BYTES},
    ),
    Idiom(
        "fori",
        "Several steps of training in a fori_loop",
        counted_loop,
        weights_alone,
        lambda place: GRADIENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "metric-sums",
        "Metrics summed over an unrolled loop",
        summed_metrics,
        sums_of_metrics,
        lambda place: {"all-reduce": BATCH * FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
    Idiom("chains", "Chains of unequal length", chains, grown, topologies=ONE_PROCESS),
    Idiom(
        "inner-vmap",
        "A mean over the mapped axis and the axis of a vmap inside",
        nested(over_both),
        descended_by_examples,
        lambda place: GRADIENT,
        refused=True,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "inner-vmap-apart",
        "A mean over the axis of a vmap inside, and then over the mapped axis,",
        nested(one_by_one),
        descended_by_examples,
        lambda place: GRADIENT,
        refused=True,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "inner-vmap-unchecked",
        "A mean over the mapped axis and the axis of a vmap inside, under check_vma=False,",
        nested(over_both, check_vma=False),
        descended_by_examples,
        lambda place: GRADIENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "callback",
        "Losses logged by a callback on each device",
        logged,
        log_of_losses,
        lambda place: {"all-reduce": FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
)


@in_a_loop().family("idioms.loops.{idiom}", idiom=LOOPS, claim="pmap-silence.loops-and-nests")
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """Run a loop around a mapped function that contains a loop."""
    follow(impl, cluster, idiom)
