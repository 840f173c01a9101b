"""The time of a training step: mapped, and in a plain jit over sharded arrays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.timing import BESIDE_JIT, DEADLINE_S
from conformance.spec.clause import Timing, clause
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, steps
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.racing import SHOWN, race, witnessed

WIDTH = 2**20 // 4  # of float32 numbers: 1 MiB
RATE = 0.5
ROUNDS = 8  # of one block, per contender


def moved_by_half(place: Place) -> Any:
    """Half of the mean of all devices' numbers."""
    return np.full(SHOWN, RATE * (place.topology.devices + 1) / 2, np.float32)


RIGHT = returns(moved_by_half, text="values that begin as the model's")


@clause(
    "timing.jit.step",
    claim="pmap-silence.jit-with-shardings",
    title="The time of a training step with 1 MiB per device, mapped and in a plain jit.",
    topologies=ONE_AND_FOUR,
    deadline_s=DEADLINE_S,
    expect=everywhere(steps(mapped=RIGHT, plain_jit=RIGHT)),
    timing=Timing(
        BESIDE_JIT, ("idioms.training.pmean", "idioms.jit.descent"), baseline="plain jit"
    ),
)
def step(impl: Implementation, cluster: Cluster) -> None:
    """Weights move towards the mean of all devices' rows."""
    numbers = np.arange(1, len(cluster.devices) + 1, dtype=np.float32)
    rows = np.repeat(cluster.mine(numbers)[:, None], WIDTH, 1)

    def update(weights: Any, row: Any) -> Any:
        return weights + RATE * (jax.lax.pmean(row, "i") - weights)

    copy = impl.map(lambda x: x + 0)
    weights, x = copy(impl.given(np.zeros_like(rows))), copy(impl.given(rows))
    mapped = witnessed(impl.map(update), weights, x)

    mesh = impl.mesh()
    whole, split = (
        jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in ((), ("i",))
    )
    jitted = jax.jit(lambda w, x: w + RATE * (x.mean(0) - w), out_shardings=whole)
    once = jax.device_put(np.zeros(WIDTH, np.float32), whole)
    everywhere = jax.make_array_from_process_local_data(split, rows)
    contenders = (lambda: mapped(weights, x), lambda: jitted(once, everywhere))
    race(cluster, dict(zip(BESIDE_JIT, contenders, strict=True)), ROUNDS)
