"""Evaluation without a mapped function: plain jit over sharded arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import WIDTH, Idiom, Turn, Watch, follow, square_loss
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.evaluation import (
    WEIGHTS,
    all_losses,
    mean_loss,
    mean_of_means,
    metrics_so_far,
    predicted,
)
from conformance.sections.idioms.models import of_all, once, reduced
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation


def of_rows(weights: Any, x: Any, y: Any) -> Any:
    """The loss of each row."""
    return jax.vmap(square_loss, in_axes=(None, 0, 0))(weights, x, y)


def predictions(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """in_shardings: the weights go to each device, with its own part of the batch."""
    copied, rows = whole(impl), split(impl)
    predict = jax.jit(
        watch.traced(lambda w, x: x @ w), in_shardings=(copied, rows), out_shardings=rows
    )
    return lambda n: predict(WEIGHTS, sharded_batch(impl, cluster, n)[0])


def gathered_losses(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device has the losses of all rows: the result is replicated."""
    evaluate = jax.jit(watch.traced(of_rows), out_shardings=whole(impl))
    return lambda n: evaluate(WEIGHTS, *sharded_batch(impl, cluster, n))


def averaged_on_the_host(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Losses of the rows, of which the host takes the mean."""
    evaluate = jax.jit(watch.traced(of_rows), out_shardings=split(impl))
    return lambda n: np.asarray(evaluate(WEIGHTS, *sharded_batch(impl, cluster, n))).mean()


def listed(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Metrics are kept in a list over steps, and fetched and stacked when they are shown."""

    def metrics(weights: Any, x: Any, y: Any) -> Any:
        error = x @ weights - y
        return {"loss": (error**2).mean(), "worst": jnp.abs(error).max()}

    evaluate = jax.jit(watch.traced(metrics), out_shardings=whole(impl))
    kept: list[Any] = []

    def turn(n: int) -> Any:
        kept.append(evaluate(WEIGHTS, *sharded_batch(impl, cluster, n)))
        return jax.tree.map(lambda *values: np.stack(values), *jax.device_get(kept))

    return turn


def reconciled(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Average each row's own running mean over the rows, in a second jit, before evaluation."""
    step = jax.jit(watch.traced(lambda mean, x: (mean + x.mean(1)) / 2), out_shardings=split(impl))
    reconcile = jax.jit(watch.traced(lambda mean: mean.mean(0)), out_shardings=whole(impl))
    mean = sharded(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))

    def turn(n: int) -> Any:
        nonlocal mean
        mean = step(mean, sharded_batch(impl, cluster, n)[0])
        return reconcile(mean)

    return turn


EVALUATION: Mapping[str, Idiom] = table(
    Idiom("predictions", "Predictions with replicated weights", predictions, predicted),
    Idiom(
        "gathered",
        "Losses of all rows on each device",
        gathered_losses,
        once(all_losses),
        of_all(1),
    ),
    Idiom(
        "host-mean",
        "Losses averaged on the host",
        averaged_on_the_host,
        mean_loss,
        order=None,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "metric-list",
        "A list of metrics, fetched when they are printed,",
        listed,
        metrics_so_far,
        reduced(2),
        order=None,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "reconciled",
        "Running means averaged by a second function",
        reconciled,
        once(mean_of_means),
        reduced(WIDTH),
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=EVALUATION, left_out=of_the_mapped)
def evaluate(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop over batches around a plain jit that trains nothing."""
    follow(impl, cluster, idiom)
