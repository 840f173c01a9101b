"""Helpers that projects write around pmap: copies for devices, checks of copies, means, chains.

Such helpers are copied from project to project, in reinforcement learning, second-order optimizers
and samplers. Each is written here as it survives the move, with one body for all implementations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    descend,
    descent,
    examples,
    follow,
    mapped_argument,
    mine,
    on_each,
    own_losses,
    square_loss,
)
from conformance.sections.idioms.checks import OTHER_TITLES, in_a_loop
from conformance.sections.idioms.generator import folded, seeded, split, threefry, uniform
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

PUT = "broadcast-copies"
DRAWS = 3  # of each chain in one step
ONE = np.uint32(0x3F800000)  # the bits of 1.0


# --- Copies with a leading axis -------------------------------------------------------------------


def broadcast_copies(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Weights get a leading axis by broadcast_to and are put on the devices; a map compares them.

    What the check has to find unequal is each device's own examples.
    """

    def replicate(value: Any) -> Any:
        rows = np.broadcast_to(value, (len(cluster.local_devices), *np.shape(value)))
        return jax.device_put(rows, impl.sharding(AXIS))

    def equal(tree: Any) -> Any:
        mark = sum(leaf.sum() for leaf in jax.tree.leaves(tree))
        return jax.lax.pmin(mark, AXIS) == jax.lax.pmax(mark, AXIS)

    step = impl.map(watch.traced(descend()), AXIS)
    check = impl.map(watch.traced(lambda copies, own: (equal(copies), equal(own))), AXIS)
    weights = replicate(np.zeros(WIDTH, np.float32))

    def turn(n: int) -> Any:
        nonlocal weights
        x, y = batch(impl, cluster, n)
        weights, loss = step(weights, x, y)
        return weights, loss, check({"weights": weights}, x)

    return turn


def checked(place: Place, n: int) -> Any:
    """The weights, the loss, and that the weights are equal on all devices, the examples not."""
    weights, loss = descent(place, n)
    sums = examples(place, n)[0].sum((1, 2))
    told = [np.full(place.topology.devices_per_process, one) for one in (True, np.ptp(sums) == 0)]
    return on_each(place, weights), on_each(place, loss), tuple(told)


# --- Helpers that ask whether they are in a map ---------------------------------------------------


def inside_or_outside(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A mean that is taken over the axis where there is one, in the map and outside it."""

    def average(value: Any) -> Any:
        try:
            jax.lax.axis_index(AXIS)
        except NameError:
            return value
        return jax.lax.pmean(value, AXIS)

    def update(weights: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(square_loss)(weights, x, y)
        return weights - RATE * average(gradient), average(value)

    copy = impl.map(watch.traced(lambda x: x), AXIS)
    step = impl.map(watch.traced(update), AXIS)
    count = len(cluster.local_devices)
    weights = copy(mapped_argument(impl, np.stack([np.zeros(WIDTH, np.float32)] * count)))

    def first(array: Any) -> Any:
        return np.asarray(array.addressable_shards[0].data)[0]

    def turn(n: int) -> Any:
        nonlocal weights
        own = [cluster.mine(part)[0] for part in examples(cluster, n)]
        alone = average(square_loss(first(weights), *own))
        weights, loss = step(weights, *batch(impl, cluster, n))
        return first(weights), first(loss), np.asarray(alone)

    return turn


def averaged(place: Place, n: int) -> Any:
    """The weights, the mean loss, and the first device's own loss before the step."""
    weights, loss = descent(place, n)
    alone = own_losses(descent(place, n - 1)[0], *examples(place, n))[place.first_row]
    return weights.astype(np.float32), np.float32(loss), np.float32(alone)


# --- Chains of a sampler --------------------------------------------------------------------------


def sampled(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A Metropolis chain on each device: a scan of draws, its state kept there between steps."""

    def log_density(x: Any) -> Any:
        return -(x**2).sum() / 2

    def draw(state: Any, _: Any) -> Any:
        key, move, accept = jax.random.split(state["key"], 3)
        old = state["position"]
        new = old + jax.random.uniform(move, (WIDTH,)) - 0.5
        level = jnp.log(jax.random.uniform(accept))
        taken = level < log_density(new) - log_density(old)
        position = jnp.where(taken, new, old)
        return {"key": key, "position": position}, (position, taken)

    def chain(state: Any) -> Any:
        state, (positions, taken) = jax.lax.scan(draw, state, None, length=DRAWS)
        return state, positions, taken.sum()

    def start(key: Any) -> Any:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        return {"key": key, "position": jax.random.uniform(key, (WIDTH,))}

    begin = impl.map(watch.traced(start), AXIS)
    sample = impl.map(watch.traced(chain), AXIS)
    count = len(cluster.local_devices)
    key = np.asarray(jax.random.PRNGKey(7))
    state = begin(mapped_argument(impl, np.stack([key] * count)))

    def turn(n: int) -> Any:
        nonlocal state
        state, positions, accepted = sample(state)
        return positions, accepted

    return turn


def level_of(key: Any) -> Any:
    """`jax.random.uniform` of one number."""
    word = threefry(key, 0)
    bits = (word[0] ^ word[1]) >> np.uint32(9) | ONE
    return bits.view(np.float32) - np.float32(1)


def drawn(place: Place, n: int) -> Any:
    """The positions of each chain in the last step, and how many proposals it accepted."""
    positions, accepted = [], []
    for device in range(place.topology.devices):
        key = folded(seeded(), device)
        at = uniform(key).astype(np.float64)
        for _ in range(n):
            path, count = [], 0
            for _ in range(DRAWS):
                key, move, accept = split(key, 3)
                new = at + uniform(move) - 0.5
                if np.log(level_of(accept)) < ((at**2).sum() - (new**2).sum()) / 2:
                    at, count = new, count + 1
                path.append(at)
        positions.append(path)
        accepted.append(count)
    return mine(place, positions), place.mine(np.array(accepted, np.int32))


HELPERS: Mapping[str, Idiom] = table(
    Idiom(
        "broadcast-copies",
        "Copies by broadcast_to, and a map that compares them,",
        broadcast_copies,
        checked,
        lambda place: {"all-reduce": DESCENT["all-reduce"] + 4 * FLOAT_BYTES},
    ),
    Idiom(
        "mean-where-mapped",
        "A mean that asks whether the axis is there",
        inside_or_outside,
        averaged,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom("sampler", "A Metropolis sampler with a chain on each device", sampled, drawn),
)


@in_a_loop(titles=OTHER_TITLES).family(
    "idioms.helpers.{idiom}",
    idiom=HELPERS,
    claim="pmap-silence.helpers-around-maps",
    topologies=lambda idiom: ONE_PROCESS if idiom.key == PUT else ONE_AND_TWO,
    left_out=lambda idiom: (
        "device_put uses the rows of one process only" if idiom.key == PUT else ""
    ),
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a map, with helpers of a project's own."""
    follow(impl, cluster, idiom)
