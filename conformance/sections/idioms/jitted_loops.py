"""Loops and nests in a plain jit over sharded arrays, and callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    BATCH,
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    follow,
)
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.evaluation import WEIGHTS
from conformance.sections.idioms.jitted import ZERO, descend, mean_loss
from conformance.sections.idioms.loops import (
    UNROLL,
    descended,
    descended_by_examples,
    log_of_losses,
    one_by_one,
    over_both,
    sums_of_metrics,
    unrolled_examples,
    weights_alone,
)
from conformance.sections.idioms.models import once, reduced
from conformance.sections.idioms.sharded import sharded, sharded_batch, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation


def unrolled(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """Several batches as global arrays."""
    features, targets = unrolled_examples(cluster, n)
    return sharded(impl, cluster.mine(features)), sharded(impl, cluster.mine(targets))


def scanned(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Several steps of training in one call, by a scan over the axis after the devices'."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        parts = jnp.moveaxis(x, 1, 0), jnp.moveaxis(y, 1, 0)
        return jax.lax.scan(lambda weights, part: descend(weights, *part), weights, parts)

    step = jax.jit(watch.traced(body), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, losses = step(weights, *unrolled(impl, cluster, n))
        return weights, losses

    return turn


def counted_loop(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Several steps of training in one call, by a fori_loop that indexes the batch."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        def one(k: Any, weights: Any) -> Any:
            return weights - RATE * jax.grad(mean_loss)(weights, x[:, k], y[:, k])

        return jax.lax.fori_loop(0, UNROLL, one, weights)

    step = jax.jit(watch.traced(body), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *unrolled(impl, cluster, n))
        return weights

    return turn


def summed_metrics(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A Python loop over the unroll keeps a list of metrics, whose sums are averaged once."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        metrics = []
        for k in range(UNROLL):
            error = x[:, k] @ weights - y[:, k]
            metrics.append({"error": jnp.abs(error).sum(1), "square": (error**2).sum(1)})
        total = jax.tree.map(lambda *values: sum(values), *metrics)
        return jax.tree.map(lambda rows: rows.mean(0), total)

    evaluate = jax.jit(watch.traced(body), out_shardings=whole(impl))
    return lambda n: evaluate(WEIGHTS, *unrolled(impl, cluster, n))


def nested(mean: Body) -> Program:
    """Descent by such a mean over two vmaps, of the rows and of each row's examples.

    The body and its collectives are the mapped function's: vmap has the axis in place of pmap.
    """

    def two_axes(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        def of_one(weights: Any, x: Any, y: Any) -> Any:
            gradient = jax.grad(lambda w: (x @ w - y) ** 2)(weights)
            return weights - RATE * mean(gradient)

        axes = {"in_axes": (None, 0, 0), "out_axes": None}  # type: dict[str, Any]
        of_row = jax.vmap(of_one, axis_name="example", **axes)
        body = jax.vmap(of_row, axis_name="batch", **axes)
        step = jax.jit(watch.traced(body), out_shardings=whole(impl))
        weights = jax.device_put(ZERO, whole(impl))

        def turn(n: int) -> Any:
            nonlocal weights
            weights = step(weights, *sharded_batch(impl, cluster, n))
            return weights

        return turn

    return two_axes


def logged(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device logs its rows' numbers and losses by a callback that is `partitioned`."""
    lines: list[tuple[int, float]] = []

    def note(numbers: Any, losses: Any) -> None:
        lines.extend(zip(numbers.tolist(), losses.tolist(), strict=True))

    def body(weights: Any, numbers: Any, x: Any, y: Any) -> Any:
        losses = ((x @ weights - y) ** 2).mean(1)
        jax.debug.callback(note, numbers, losses, partitioned=True)
        return losses.mean()

    evaluate = jax.jit(watch.traced(body), out_shardings=whole(impl))
    numbers = sharded(impl, cluster.mine(np.arange(cluster.topology.devices)))

    def turn(n: int) -> Any:
        lines.clear()
        mean = evaluate(WEIGHTS, numbers, *sharded_batch(impl, cluster, n))
        jax.block_until_ready(mean)
        jax.effects_barrier()
        return mean, np.array(sorted(lines), np.float32)

    return turn


def gathered(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A callback as it is by default: one call has the losses of all rows."""
    calls: list[Any] = []

    def body(weights: Any, x: Any, y: Any) -> Any:
        losses = ((x @ weights - y) ** 2).mean(1)
        jax.debug.callback(lambda rows: calls.append(np.asarray(rows)), losses)
        return losses.mean()

    evaluate = jax.jit(watch.traced(body), out_shardings=whole(impl))

    def turn(n: int) -> Any:
        calls.clear()
        mean = evaluate(WEIGHTS, *sharded_batch(impl, cluster, n))
        jax.block_until_ready(mean)
        jax.effects_barrier()
        return mean, list(calls)

    return turn


def mean_and_lines(place: Place, n: int) -> Any:
    """The mean loss once, and each row's number and loss."""
    mean, lines = log_of_losses(place, n)
    return mean[0], lines


def mean_and_call(place: Place, n: int) -> Any:
    """The mean loss once, and the losses of all rows in one call."""
    mean, lines = log_of_losses(place, n)
    return mean[0], [lines[:, 1]]


LOOPS: Mapping[str, Idiom] = table(
    Idiom(
        "scan",
        "Several steps of training in a scan",
        scanned,
        once(descended),
        lambda place: DESCENT,
        topologies=ONE_AND_TWO,
    ),
    Idiom(
        "fori",
        "Several steps of training in a fori_loop",
        counted_loop,
        once(weights_alone),
        reduced(WIDTH),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "metric-sums",
        "Metrics summed over an unrolled loop",
        summed_metrics,
        once(sums_of_metrics),
        lambda place: {"all-reduce": BATCH * FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "inner-vmap",
        "A mean over the axes of two vmaps",
        nested(over_both),
        once(descended_by_examples),
        reduced(WIDTH),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "inner-vmap-apart",
        "A mean over the axis of a vmap, and then over that of the vmap around it,",
        nested(one_by_one),
        once(descended_by_examples),
        reduced(WIDTH),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "callback",
        "Losses logged by a callback with partitioned=True",
        logged,
        mean_and_lines,
        lambda place: {"all-reduce": FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "callback-gathered",
        "Losses logged by a callback without partitioned=True",
        gathered,
        mean_and_call,
        lambda place: {"all-reduce": FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=LOOPS, left_out=of_the_mapped)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit that contains a loop."""
    follow(impl, cluster, idiom)
