"""Groups of devices: two maps on halves, psums as barriers, maps under jit, rows fed in ahead."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
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
    on_each,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

AHEAD = 2  # batches that are on the devices before they are used


def trained(place: Place, n: int) -> Any:
    """The weights on each device."""
    return on_each(place, descent(place, n)[0])


def halves(cluster: Cluster) -> tuple[list[jax.Device], list[jax.Device]]:
    """This process's devices in two groups."""
    here = cluster.local_devices
    return here[: len(here) // 2], here[len(here) // 2 :]


def upper(place: Place) -> list[int]:
    """The positions of the second group."""
    here = place.topology.devices_per_process
    return list(range(here // 2, here))


def actor_and_learner(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """One group of devices acts with copies of the parameters that the other group trains."""
    actors, learners = halves(cluster)
    act = impl.map(watch.traced(lambda w, x: w + x), AXIS, devices=actors)
    learn = impl.map(
        watch.traced(lambda w, seen: w + jax.lax.pmean(seen, AXIS)), AXIS, devices=learners
    )
    weights = np.zeros((len(learners), WIDTH), np.float32)

    def turn(n: int) -> Any:
        nonlocal weights
        seen = act(np.asarray(weights), cluster.rows(WIDTH)[: len(actors)] * n)
        weights = learn(weights, np.asarray(seen))
        return weights

    return turn


def learned(place: Place, n: int) -> Any:
    """The weights on the learners."""
    half = place.topology.devices_per_process // 2
    weights = np.zeros(WIDTH)
    for k in range(1, n + 1):
        weights = weights + (weights + place.all_rows(WIDTH)[:half] * k).mean(0)
    return np.tile(weights.astype(np.float32), (half, 1))


def barrier(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A psum of ones over all devices, waited for: all processes have come here."""
    wait = impl.map(watch.traced(lambda one: jax.lax.psum(one, AXIS)), AXIS)
    ones = mapped_argument(impl, np.ones(len(cluster.local_devices), np.float32))
    return lambda n: wait(ones).block_until_ready()


def count_of_devices(place: Place, n: int) -> Any:
    """The number of all devices, on each."""
    return on_each(place, place.topology.devices)


def under_jit(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The map is called in a jitted function, which scales what it returns."""
    mapped = impl.map(watch.traced(descend()), AXIS)
    step = jax.jit(lambda weights, x, y: mapped(weights, x, y)[0] * 2)
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *batch(impl, cluster, n)) / 2
        return weights

    return turn


def placed(impl: Implementation, shards: list[Any]) -> Any:
    """One shard on each device, as jax.device_put_sharded did it: here by device_put."""
    return jax.device_put(np.stack(shards), impl.sharding(AXIS))


def prefetched(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Batches are reshaped by the devices, and put on them before they are used."""
    count = len(cluster.local_devices)

    def shard(rows: Any) -> Any:
        return rows.reshape(count, -1, *rows.shape[1:])

    def batches() -> Iterator[Any]:
        n = 1
        while True:
            features, targets = (cluster.mine(one) for one in examples(cluster, n))
            yield features.reshape(-1, WIDTH), targets.reshape(-1)  # as a data set has them
            n += 1

    def prefetch(source: Iterator[Any]) -> Iterator[Any]:
        queue: collections.deque[Any] = collections.deque()
        while True:
            while len(queue) < AHEAD:
                sharded = jax.tree.map(shard, next(source))
                queue.append(jax.tree.map(lambda rows: placed(impl, list(rows)), sharded))
            yield queue.popleft()

    step = impl.map(watch.traced(descend()), AXIS)
    weights = zeros(impl, cluster)
    feed = prefetch(batches())

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *next(feed))
        return weights

    return turn


def reversed_devices(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The map is over this process's devices in reverse order."""
    step = impl.map(watch.traced(lambda x: x * 2), AXIS, devices=cluster.local_devices[::-1])
    rows = cluster.rows(WIDTH)

    def turn(n: int) -> Any:
        nonlocal rows
        rows = step(rows)
        return rows

    return turn


def doubled(place: Place, n: int) -> Any:
    """This process's rows, doubled so many times."""
    return place.rows(WIDTH) * np.float32(2**n)


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}


def joined(place: Place, more: int) -> Mapping[str, int]:
    """Under jit, legacy pmap joins the devices' weights by an all-reduce of all of them."""
    return {"all-reduce": place.topology.devices * WIDTH * FLOAT_BYTES + more}


DEVICES: Mapping[str, Idiom] = table(
    Idiom(
        "actor-and-learner",
        "Two mapped functions on two groups of devices, alternating,",
        actor_and_learner,
        learned,
        lambda place: GRADIENT,
        order=upper,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "barrier",
        "A psum of ones as a barrier",
        barrier,
        count_of_devices,
        lambda place: {"all-reduce": FLOAT_BYTES},
    ),
    Idiom(
        "under-jit",
        "A mapped function called under jit",
        under_jit,
        trained,
        lambda place: GRADIENT,  # the unused loss is no longer averaged
        of_legacy=lambda place: joined(place, GRADIENT["all-reduce"]),
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "prefetch",
        "Batches sharded and put on the devices in advance",
        prefetched,
        trained,
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "reversed",
        "A mapped function over the devices in reverse order, fed with its own output,",
        reversed_devices,
        doubled,
        order=lambda place: list(range(place.topology.devices_per_process))[::-1],
        topologies=ONE_PROCESS,
    ),
)


@in_a_loop().family("idioms.devices.{idiom}", idiom=DEVICES, claim="pmap-silence.groups-of-devices")
def place(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop over maps on groups of devices."""
    follow(impl, cluster, idiom)
