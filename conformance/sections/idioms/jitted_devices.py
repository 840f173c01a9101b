"""Groups and orders of devices, barriers and rows put ahead, each in plain jits."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    examples,
    follow,
)
from conformance.sections.idioms import devices as mapped
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.jitted import ZERO, descend
from conformance.sections.idioms.models import once, reduced
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.clause import devices
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation


def actor_and_learner(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Two meshes: one acts with a copy of the weights that the other trains."""
    actors, learners = (impl.mesh(AXIS, half) for half in mapped.halves(cluster))
    acting, learning = NamedSharding(actors, P(AXIS)), NamedSharding(learners, P())
    act = jax.jit(watch.traced(lambda w, x: w + x), out_shardings=acting)
    learn = jax.jit(watch.traced(lambda w, seen: w + seen.mean(0)), out_shardings=learning)
    weights = jax.device_put(ZERO, learning)

    def turn(n: int) -> Any:
        nonlocal weights
        rows = jax.device_put(cluster.rows(WIDTH)[: actors.size] * n, acting)
        seen = act(jax.device_put(weights, NamedSharding(actors, P())), rows)
        weights = learn(weights, jax.device_put(seen, NamedSharding(learners, P(AXIS))))
        return weights

    return turn


def barrier(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A sum of ones, one on each device, waited for: all processes have come here."""
    wait = jax.jit(watch.traced(lambda ones: ones.sum()), out_shardings=whole(impl))
    ones = sharded(impl, np.ones(len(cluster.local_devices), np.float32))
    return lambda n: wait(ones).block_until_ready()


def under_jit(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The jitted step is called in another jitted function, which scales what it returns."""
    inner = jax.jit(watch.traced(descend), out_shardings=whole(impl))
    step = jax.jit(lambda weights, x, y: inner(weights, x, y)[0] * 2)
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(weights, *sharded_batch(impl, cluster, n)) / 2
        return weights

    return turn


def prefetched(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Batches are put on their devices before they are used, without the devices' axis."""

    def batches() -> Iterator[Any]:
        n = 1
        while True:
            features, targets = examples(cluster, n)
            yield features.reshape(-1, WIDTH), targets.reshape(-1)  # as a data set has them
            n += 1

    def prefetch(source: Iterator[Any]) -> Iterator[Any]:
        queue: collections.deque[Any] = collections.deque()
        while True:
            while len(queue) < mapped.AHEAD:
                queue.append(jax.device_put(next(source), split(impl)))
            yield queue.popleft()

    step = jax.jit(watch.traced(descend), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))
    feed = prefetch(batches())

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *next(feed))
        return weights

    return turn


def reversed_devices(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The mesh is over the devices in reverse order."""
    rows_there = NamedSharding(impl.mesh(AXIS, cluster.local_devices[::-1]), P(AXIS))
    step = jax.jit(watch.traced(lambda x: x * 2), out_shardings=rows_there)
    rows = jax.device_put(cluster.rows(WIDTH), rows_there)

    def turn(n: int) -> Any:
        nonlocal rows
        rows = step(rows)
        return rows

    return turn


DEVICES: Mapping[str, Idiom] = table(
    Idiom(
        "actor-and-learner",
        "Two jitted functions on two groups of devices, alternating,",
        actor_and_learner,
        once(mapped.learned),
        reduced(WIDTH),
        order=mapped.upper,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "barrier",
        "A sum of ones as a barrier",
        barrier,
        once(mapped.count_of_devices),
        lambda place: {"all-reduce": FLOAT_BYTES},
    ),
    Idiom(
        "under-jit",
        "A jitted function called under jit",
        under_jit,
        once(mapped.trained),
        reduced(WIDTH),  # the unused loss is no longer averaged
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "prefetch",
        "Batches put on the devices in advance",
        prefetched,
        once(mapped.trained),
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "reversed",
        "A jitted function over the devices in reverse order, fed with its own output,",
        reversed_devices,
        mapped.doubled,
        order=lambda place: list(range(place.topology.devices_per_process))[::-1],
        topologies=ONE_PROCESS,
    ),
)


@in_a_jit().family(
    "idioms.jit.{idiom}",
    idiom=DEVICES,
    left_out=of_the_mapped,
    # Half of two devices is one, which has nothing to reduce.
    needs=lambda idiom: devices(4) if idiom.order is mapped.upper else devices(2),
)
def place(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop over plain jits on groups of devices."""
    follow(impl, cluster, idiom)
