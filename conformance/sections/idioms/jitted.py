"""Common patterns without a mapped function: plain jit over arrays that are sharded over the
devices.

Each program is that of the pattern of the same name, its bodies written for the full batch. It must
compute the same values, and its compiled step must communicate no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.sections.idioms import (
    AXIS,
    BATCH,
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    descent,
    examples,
    follow,
    mine,
    own_gradients,
)
from conformance.sections.idioms.checks import in_a_jit
from conformance.sections.idioms.generator import SEED
from conformance.sections.idioms.models import (
    KEPT,
    KERNEL,
    LIMIT,
    MICRO,
    MOST,
    grown,
    members,
    moved_on,
    normal,
    of_all,
    padded,
    reduced,
    shared,
    trained_members,
)
from conformance.sections.idioms.project_helpers import all_chains, begun, inference_loop, starts
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

Update = Callable[..., Any]


def mean_loss(weights: Any, x: Any, y: Any) -> Any:
    """The mean square error over all devices' examples."""
    return ((x @ weights - y) ** 2).mean()


def trained(update: Update, state: Any) -> Program:
    """A loop of `update(state, features, targets)`, of which all results are replicated."""

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        step = jax.jit(watch.traced(update), out_shardings=whole(impl), donate_argnums=0)
        kept = jax.device_put(state, whole(impl))

        def turn(n: int) -> Any:
            nonlocal kept
            kept, metric = step(watch.gives(kept), *sharded_batch(impl, cluster, n))
            return kept, metric

        return turn

    return program


def descend(weights: Any, x: Any, y: Any) -> Any:
    """A step of descent, and the loss."""
    loss, gradient = jax.value_and_grad(mean_loss)(weights, x, y)
    return weights - RATE * gradient, loss


def descended(place: Place, n: int) -> Any:
    """The weights and the last loss."""
    weights, loss = descent(place, n)
    return weights.astype(np.float32), np.float32(loss)


def accumulate(weights: Any, x: Any, y: Any) -> Any:
    """A step of descent by gradients of parts of each device's batch."""

    def part(total: Any, one: Any) -> Any:
        loss, gradient = jax.value_and_grad(mean_loss)(weights, *one)
        return (total[0] + loss, total[1] + gradient), None

    parts = (jnp.moveaxis(one.reshape(len(one), MICRO, -1, *one.shape[2:]), 1, 0) for one in (x, y))
    (loss, gradient), _ = jax.lax.scan(part, (jnp.float32(0), weights * 0), tuple(parts))
    return weights - RATE * gradient / MICRO, loss / MICRO


def clip(weights: Any, x: Any, y: Any) -> Any:
    """A step of descent by a gradient of at most the norm."""
    gradient = jax.grad(mean_loss)(weights, x, y)
    norm = jnp.sqrt((gradient**2).sum())
    return weights - RATE * gradient * jnp.minimum(1.0, MOST / norm), norm


def clipped(place: Place, n: int) -> Any:
    """The weights, and the norm of the last gradient."""
    weights, norm = np.zeros(WIDTH), 0.0
    for k in range(1, n + 1):
        gradient = own_gradients(weights, *examples(place, k)).mean(0)
        norm = np.sqrt((gradient**2).sum())
        weights = weights - RATE * gradient * min(1.0, MOST / norm)
    return weights.astype(np.float32), np.float32(norm)


def with_momentum(state: Any, x: Any, y: Any) -> Any:
    """A step of descent with momentum."""
    moment = KEPT * state["moment"] + jax.grad(mean_loss)(state["weights"], x, y)
    new = {"moment": moment, "weights": state["weights"] - RATE * moment}
    return new, (moment**2).sum()


def moved(place: Place, n: int) -> Any:
    """The momentum, the weights, and the momentum's square."""
    weights, moment = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        moment = KEPT * moment + own_gradients(weights, *examples(place, k)).mean(0)
        weights = weights - RATE * moment
    state = {"moment": moment.astype(np.float32), "weights": weights.astype(np.float32)}
    return state, np.float32((moment**2).sum())


def counted(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Sums of correct answers and of examples that are no padding."""

    def body(kernel: Any, x: Any, labels: Any, mask: Any) -> Any:
        right = (x @ kernel).argmax(-1) == labels
        return {"count": mask.sum(), "right": (right * mask).sum()}

    evaluate = jax.jit(watch.traced(body), out_shardings=whole(impl))
    return lambda n: evaluate(KERNEL, *(sharded(impl, cluster.mine(a)) for a in padded(cluster, n)))


def counts(place: Place, n: int) -> Any:
    """Both sums."""
    x, labels, mask = padded(place, n)
    right = (x @ KERNEL).argmax(-1) == labels
    return {"count": np.float32(mask.sum()), "right": np.float32((right * mask).sum())}


def joined(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Predictions of the whole batch on each device."""

    def body(kernel: Any, x: Any) -> Any:
        return (x @ kernel).argmax(-1).reshape(-1)

    predict = jax.jit(watch.traced(body), out_shardings=whole(impl))
    return lambda n: predict(KERNEL, sharded_batch(impl, cluster, n)[0])


def predictions(place: Place, n: int) -> Any:
    """The predictions for all examples."""
    return (examples(place, n)[0] @ KERNEL).argmax(-1).reshape(-1).astype(np.int32)


def normalised(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Batch norm over all devices, its running mean and variance in the state."""

    def body(state: Any, x: Any) -> Any:
        mean = x.mean((0, 1))
        variance = (x**2).mean((0, 1)) - mean**2
        running = {"mean": (state["mean"] + mean) / 2, "var": (state["var"] + variance) / 2}
        return running, (x - mean) / jnp.sqrt(variance + 1)

    step = jax.jit(watch.traced(body), out_shardings=(whole(impl), split(impl)))
    first = {"mean": np.zeros(WIDTH, np.float32), "var": np.ones(WIDTH, np.float32)}
    state = jax.device_put(first, whole(impl))

    def turn(n: int) -> Any:
        nonlocal state
        state, y = step(state, sharded_batch(impl, cluster, n)[0])
        return state, y

    return turn


def normal_once(place: Place, n: int) -> Any:
    """The running mean and variance once, and this process's normal examples."""
    state, y = normal(place, n)
    return {key: one[0] for key, one in state.items()}, y


def ensemble(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A member on each device, all trained on one batch; their predictions are averaged."""

    def of_one(weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(mean_loss)(weights, x, y)

    def body(weights: Any, x: Any, y: Any) -> Any:
        new = jax.vmap(of_one, in_axes=(0, None, None))(weights, x, y)
        return new, (new @ x.T).mean(0)

    step = jax.jit(watch.traced(body), out_shardings=(split(impl), whole(impl)))
    weights = sharded(impl, cluster.mine(members(cluster)))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, prediction = step(weights, *shared(cluster, n))
        return weights, prediction

    return turn


def ensemble_predictions(place: Place, n: int) -> Any:
    """This process's members, and the mean of all members' predictions."""
    weights = trained_members(place, n)
    prediction = shared(place, n)[0] @ weights.mean(0)
    return mine(place, weights), prediction.astype(np.float32)


def ring(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Members train each on its own data, and then move on to the next device."""

    def of_one(weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(mean_loss)(weights, x, y)

    def body(weights: Any, x: Any, y: Any) -> Any:
        return jnp.roll(jax.vmap(of_one)(weights, x, y), 1, 0)

    step = jax.jit(watch.traced(body), out_shardings=split(impl))
    weights = sharded(impl, cluster.mine(members(cluster)))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


def chains(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device's chain grows until it is done, in one loop of all under vmap."""

    def body(state: Any) -> Any:
        def unfinished(carry: Any) -> Any:
            return carry[0] < LIMIT

        def grow(carry: Any) -> Any:
            return carry[0] * 2 - carry[0] / 2, carry[1] + 1

        return jax.lax.while_loop(unfinished, grow, (state, jnp.int32(0)))

    sample = jax.jit(watch.traced(jax.vmap(body)), out_shardings=split(impl))
    return lambda n: sample(sharded(impl, cluster.rows() * n))


def chains_apart(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device's chain grows until it is done, in a shard_map of a vmap: a loop of its own."""

    def body(state: Any) -> Any:
        start = state, jnp.int32(0)
        return jax.lax.while_loop(lambda c: c[0] < LIMIT, lambda c: (c[0] * 1.5, c[1] + 1), start)

    chain, rows = watch.traced(jax.vmap(body)), P(AXIS)
    sample = jax.jit(jax.shard_map(chain, mesh=impl.mesh(AXIS), in_specs=rows, out_specs=rows))
    return lambda n: sample(sharded(impl, cluster.rows() * n))


def kernel_chains(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """One chain for each row under vmap, its state kept on its device between steps."""

    def sample(keys: Any, state: Any) -> Any:
        state, positions, accepted = jax.vmap(inference_loop)(keys, state)
        return state, (positions, accepted), state.position.mean(0)

    rows = split(impl)
    run_chains = jax.jit(watch.traced(sample), out_shardings=(rows, rows, whole(impl)))
    begin = jax.jit(watch.traced(jax.vmap(begun)), out_shardings=rows)
    state = begin(sharded(impl, cluster.mine(starts(cluster))))
    key = jax.random.PRNGKey(SEED)

    def turn(n: int) -> Any:
        nonlocal state, key
        key, now = jax.random.split(key)
        keys = np.asarray(jax.random.split(now, cluster.topology.devices))
        state, *results = run_chains(sharded(impl, cluster.mine(keys)), state)
        return results

    return turn


def of_the_kernel(place: Place, n: int) -> Any:
    """The positions, how many proposals were accepted, and the mean of the last positions."""
    paths, accepted = all_chains(place, n)
    return [(mine(place, paths), place.mine(accepted)), paths[:, -1].mean(0).astype(np.float32)]


ZERO = np.zeros(WIDTH, np.float32)

JITTED: Mapping[str, Idiom] = table(
    Idiom(
        "descent",
        "Gradients of the mean loss",
        trained(descend, ZERO),
        descended,
        lambda place: DESCENT,
    ),
    Idiom(
        "accumulation",
        "Gradients accumulated by a scan",
        trained(accumulate, ZERO),
        descended,
        lambda place: DESCENT,
    ),
    Idiom(
        "clipping", "Gradients clipped by their norm", trained(clip, ZERO), clipped, reduced(WIDTH)
    ),
    Idiom(
        "momentum",
        "Weights and momentum, donated,",
        trained(with_momentum, {"moment": ZERO, "weights": ZERO}),
        moved,
        reduced(WIDTH),
    ),
    Idiom("padded", "Correct predictions counted over a padded batch", counted, counts, reduced(2)),
    Idiom(
        "joined",
        "Predictions of the whole batch on each device",
        joined,
        predictions,
        of_all(BATCH),
    ),
    Idiom("batch-norm", "Batch norm over all devices", normalised, normal_once, reduced(2 * WIDTH)),
    Idiom(
        "ensemble",
        "One member on each device",
        ensemble,
        ensemble_predictions,
        reduced(BATCH),
    ),
    Idiom(
        "ring",
        "Members that move on to the next device",
        ring,
        moved_on,
        lambda place: {"collective-permute": WIDTH * FLOAT_BYTES},
    ),
    Idiom("chains", "Chains of unequal length", chains, grown),
    Idiom(
        "chains-apart",
        "Chains of unequal length in a shard_map of a vmap",
        chains_apart,
        grown,
    ),
    Idiom(
        "kernel-chains",
        "Chains of a sampling kernel, with keys split on the host,",
        kernel_chains,
        of_the_kernel,
        reduced(WIDTH),
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=JITTED)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit."""
    follow(impl, cluster, idiom)
