"""Evaluation and inference: whole parameters, gathered losses, sums over padded batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    BATCH,
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
    own_losses,
    square_loss,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.sections.idioms.models import KERNEL, normal, of_all, padded, reduced
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

WEIGHTS = np.array([1, -2, 3], np.float32)


def whole_weights(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """in_axes=(None, 0): the weights go whole to each device, with its own part of the batch."""
    predict = impl.map(watch.traced(lambda w, x: x @ w), "batch", in_axes=(None, 0))
    return lambda n: predict(WEIGHTS, batch(impl, cluster, n)[0])


def predicted(place: Place, n: int) -> Any:
    """Each device's predictions."""
    return mine(place, examples(place, n)[0] @ WEIGHTS)


def gathered_losses(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device returns the losses of all."""

    def body(weights: Any, x: Any, y: Any) -> Any:
        return jax.lax.all_gather(square_loss(weights, x, y), "batch")

    evaluate = impl.map(watch.traced(body), "batch", in_axes=(None, 0, 0))
    return lambda n: evaluate(WEIGHTS, *batch(impl, cluster, n))


def all_losses(place: Place, n: int) -> Any:
    """The losses of all devices, on each."""
    return on_each(place, own_losses(WEIGHTS, *examples(place, n)))


def counted(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Sums of correct answers and of examples that are no padding, over all devices."""

    def body(kernel: Any, x: Any, labels: Any, mask: Any) -> Any:
        right = (x @ kernel).argmax(-1) == labels
        return jax.lax.psum({"count": mask.sum(), "right": (right * mask).sum()}, "batch")

    evaluate = impl.map(watch.traced(body), "batch", in_axes=(None, 0, 0, 0))

    def turn(n: int) -> Any:
        x, labels, mask = (mapped_argument(impl, cluster.mine(one)) for one in padded(cluster, n))
        return evaluate(KERNEL, x, labels, mask)

    return turn


def sums_of_counted(place: Place, n: int) -> Any:
    """Both sums, on each device."""
    x, labels, mask = padded(place, n)
    right = (x @ KERNEL).argmax(-1) == labels
    return {
        "count": on_each(place, mask.sum()),
        "right": on_each(place, (right * mask).sum()),
    }


def averaged_on_the_host(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Losses of the device's own, of which the host takes the mean."""
    evaluate = impl.map(watch.traced(square_loss), "batch", in_axes=(None, 0, 0))
    return lambda n: np.asarray(evaluate(WEIGHTS, *batch(impl, cluster, n))).mean()


def mean_loss(place: Place, n: int) -> Any:
    """The mean of all devices' losses."""
    return np.float32(own_losses(WEIGHTS, *examples(place, n)).mean())


def listed(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Metrics are kept in a list over steps, and fetched and stacked when they are shown."""
    evaluate = impl.map(watch.traced(mean_metrics), "batch", in_axes=(None, 0, 0))
    kept: list[Any] = []

    def turn(n: int) -> Any:
        kept.append(evaluate(WEIGHTS, *batch(impl, cluster, n)))
        fetched = [jax.tree.map(lambda x: np.asarray(x)[0], one) for one in kept]
        return jax.tree.map(lambda *values: np.stack(values), *fetched)

    return turn


def mean_metrics(weights: Any, x: Any, y: Any) -> Any:
    """The mean loss and the largest error of all devices."""
    loss = jax.lax.pmean(square_loss(weights, x, y), "batch")
    return {"loss": loss, "worst": jax.lax.pmax(jnp.abs(x @ weights - y).max(), "batch")}


def metrics_so_far(place: Place, n: int) -> Any:
    """The metrics of all steps up to this one."""
    worst = []
    for k in range(1, n + 1):
        x, y = examples(place, k)
        worst.append(np.abs(x @ WEIGHTS - y).max())
    losses = [mean_loss(place, k) for k in range(1, n + 1)]
    return {"loss": np.array(losses, np.float32), "worst": np.array(worst, np.float32)}


def joined_predictions(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Predictions of the whole batch on each device, by a tiled all_gather."""

    def body(kernel: Any, x: Any) -> Any:
        return jax.lax.all_gather((x @ kernel).argmax(-1), "batch", tiled=True)

    predict = impl.map(watch.traced(body), "batch", in_axes=(None, 0))
    return lambda n: predict(KERNEL, batch(impl, cluster, n)[0])


def all_predictions(place: Place, n: int) -> Any:
    """The predictions for all examples, on each device."""
    classes = (examples(place, n)[0] @ KERNEL).argmax(-1).reshape(-1).astype(np.int32)
    return np.broadcast_to(classes, (place.topology.devices_per_process, classes.size))


def normalised(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Batch norm over all devices, its running mean and variance in the state."""

    def body(state: Any, x: Any) -> Any:
        mean = jax.lax.pmean(x.mean(0), "batch")
        variance = jax.lax.pmean((x**2).mean(0), "batch") - mean**2
        running = {"mean": (state["mean"] + mean) / 2, "var": (state["var"] + variance) / 2}
        return running, (x - mean) / jnp.sqrt(variance + 1)

    step = impl.map(watch.traced(body), "batch")
    rows = np.ones((len(cluster.local_devices), WIDTH), np.float32)
    state = {"mean": mapped_argument(impl, rows * 0), "var": mapped_argument(impl, rows)}

    def turn(n: int) -> Any:
        nonlocal state
        state, y = step(state, batch(impl, cluster, n)[0])
        return state, y

    return turn


def reconciled(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Average each device's own running mean over the devices, in a mapped function, before
    evaluation.
    """
    step = impl.map(watch.traced(lambda mean, x: (mean + x.mean(0)) / 2), "batch")
    reconcile = impl.map(watch.traced(lambda mean: jax.lax.pmean(mean, "batch")), "batch")
    mean = mapped_argument(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))

    def turn(n: int) -> Any:
        nonlocal mean
        mean = step(mean, batch(impl, cluster, n)[0])
        return reconcile(mean)

    return turn


def mean_of_means(place: Place, n: int) -> Any:
    """The mean of the devices' running means."""
    mean = np.zeros(WIDTH)
    for k in range(1, n + 1):
        mean = (mean + examples(place, k)[0].mean((0, 1))) / 2
    return on_each(place, mean)


EVALUATION: Mapping[str, Idiom] = table(
    Idiom("whole-weights", "Predictions with in_axes=(None, 0)", whole_weights, predicted),
    Idiom("gathered", "Losses gathered from all devices", gathered_losses, all_losses, of_all(1)),
    Idiom(
        "padded",
        "Correct predictions counted over a padded batch",
        counted,
        sums_of_counted,
        reduced(2),
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
        "joined",
        "Predictions joined by a tiled all_gather",
        joined_predictions,
        all_predictions,
        of_all(BATCH),
    ),
    Idiom("batch-norm", "Batch norm over all devices", normalised, normal, reduced(2 * WIDTH)),
    Idiom(
        "reconciled",
        "Running means averaged by a second mapped function",
        reconciled,
        mean_of_means,
        reduced(WIDTH),
    ),
)


@in_a_loop().family("idioms.evaluation.{idiom}", idiom=EVALUATION, claim="pmap-silence.evaluation")
def evaluate(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop over batches that trains nothing."""
    follow(impl, cluster, idiom)
