"""Random numbers on each device: keys that are split, folded with the device's index, or carried.

The model is JAX's default generator, Threefry, in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    FLOAT_BYTES,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    follow,
    mapped_argument,
    mine,
    on_each,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.sections.idioms.generator import (
    SEED,
    folded,
    seeded,
    split,
    uniform,
)
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

KEPT = 0.75  # of a row, by dropout


# --- The programs ---------------------------------------------------------------------------------


def split_for_devices(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """In each step the host splits its key: a new one, and one for each device."""
    draw = impl.map(watch.traced(lambda key: jax.random.uniform(key, (WIDTH,))), "batch")
    key = jax.random.PRNGKey(SEED)

    def turn(n: int) -> Any:
        nonlocal key
        key, now = jax.random.split(key)
        keys = np.asarray(jax.random.split(now, len(cluster.devices)))
        return draw(mapped_argument(impl, cluster.mine(keys)))

    return turn


def drawn_by_splits(place: Place, n: int) -> Any:
    """Each device's numbers."""
    key = now = seeded()
    for _ in range(n):
        key, now = split(key)
    return mine(place, [uniform(one) for one in split(now, place.topology.devices)])


def folded_with_index(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Fold the step and the device's index into one unmapped key."""

    def body(key: Any, step: Any, row: Any) -> Any:
        key = jax.random.fold_in(jax.random.fold_in(key, step), jax.lax.axis_index("batch"))
        return row + jax.random.uniform(key, row.shape)

    draw = impl.map(watch.traced(body), "batch", in_axes=(None, None, 0))
    key = np.asarray(jax.random.PRNGKey(SEED))
    rows = mapped_argument(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))
    return lambda n: draw(key, np.int32(n), rows)


def drawn_by_folds(place: Place, n: int) -> Any:
    """Each device's numbers."""
    key = folded(seeded(), n)
    return mine(place, [uniform(folded(key, d)) for d in range(place.topology.devices)])


def carried(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device carries its key in the state, which is donated, and splits it in the step."""

    def body(state: Any) -> Any:
        key, now = jax.random.split(state["key"])
        return {"key": key, "sum": state["sum"] + jax.random.uniform(now, (WIDTH,))}

    step = impl.map(watch.traced(body), "batch", donate_argnums=(0,))
    keys = np.asarray(jax.random.split(jax.random.PRNGKey(SEED), len(cluster.devices)))
    sums = np.zeros((len(cluster.local_devices), WIDTH), np.float32)
    state = {"key": mapped_argument(impl, cluster.mine(keys)), "sum": mapped_argument(impl, sums)}
    state = impl.map(lambda one: one)(state)

    def turn(n: int) -> Any:
        nonlocal state
        state = step(watch.gives(state))
        return state

    return turn


def sums_of_carried(place: Place, n: int) -> Any:
    """Each device's key and the sum of what it drew."""
    keys, sums = split(seeded(), place.topology.devices), []
    for d in range(len(keys)):
        total = np.zeros(WIDTH, np.float32)
        for _ in range(n):
            keys[d], now = split(keys[d])
            total = total + uniform(now)
        sums.append(total)
    return {"key": place.mine(keys), "sum": mine(place, sums)}


def dropped_out(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Dropout with another mask on each device and in each step, and the mean of what is left."""

    def body(key: Any, step: Any, row: Any) -> Any:
        key = jax.random.fold_in(jax.random.fold_in(key, step), jax.lax.axis_index("batch"))
        mask = jax.random.bernoulli(key, KEPT, row.shape)
        return jax.lax.pmean(jnp.where(mask, row / KEPT, 0), "batch")

    step = impl.map(watch.traced(body), "batch", in_axes=(None, None, 0))
    key = np.asarray(jax.random.PRNGKey(SEED))
    rows = mapped_argument(impl, cluster.rows(WIDTH))
    return lambda n: step(key, np.int32(n), rows)


def left_by_dropout(place: Place, n: int) -> Any:
    """The mean over all devices."""
    key, rows = folded(seeded(), n), place.all_rows(WIDTH)
    masks = [uniform(folded(key, d)) < KEPT for d in range(len(rows))]
    return on_each(place, np.where(masks, rows / KEPT, 0).mean(0))


def of_the_first(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each device draws its own weights, and all take those of the first."""

    def body(key: Any) -> Any:
        weights = jax.random.uniform(key, (WIDTH,))
        first = jax.lax.axis_index("batch") == 0
        return jax.lax.psum(jnp.where(first, weights, 0), "batch")

    init = impl.map(watch.traced(body), "batch")

    def turn(n: int) -> Any:
        keys = np.asarray(jax.random.split(jax.random.PRNGKey(n), len(cluster.devices)))
        return init(mapped_argument(impl, cluster.mine(keys)))

    return turn


def drawn_by_the_first(place: Place, n: int) -> Any:
    """The first device's numbers, on each."""
    keys = split(np.array([0, n], np.uint32), place.topology.devices)
    return on_each(place, uniform(keys[0]))


ROW = {"all-reduce": WIDTH * FLOAT_BYTES}

RANDOMNESS: Mapping[str, Idiom] = table(
    Idiom("split", "A key split for the devices", split_for_devices, drawn_by_splits),
    Idiom(
        "fold-in",
        "A key into which each device folds its index",
        folded_with_index,
        drawn_by_folds,
    ),
    Idiom(
        "carried",
        "A key in the donated state of each device",
        carried,
        sums_of_carried,
        gives=True,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "dropout",
        "Dropout with another mask on each device",
        dropped_out,
        left_by_dropout,
        lambda place: ROW,
    ),
    Idiom(
        "of-the-first",
        "Weights drawn on each device, of which all take the first device's,",
        of_the_first,
        drawn_by_the_first,
        lambda place: ROW,
        topologies=ONE_PROCESS,
    ),
)


@in_a_loop().family(
    "idioms.randomness.{idiom}", idiom=RANDOMNESS, claim="pmap-silence.randomness-per-device"
)
def draw(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop that draws on each device."""
    follow(impl, cluster, idiom)
