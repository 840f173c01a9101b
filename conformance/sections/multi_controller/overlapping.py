"""Overlap of a pipeline's microbatches: two stages, each on its own device.

No clock decides. The second stage takes some hundred times as long as the first: if they run at
once, the first has finished the last microbatch long before the second has finished the last but
one. If each stage is awaited before the next is enqueued, that is impossible: the control. (A
callback in the stages would show more, but the CPU runs a program with a callback in the thread
that calls it. The order is tested once, for the last microbatch, because a test of each would have
only the time of one second stage, which a busy machine may take up.)
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, in_steps, noted, returns
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, Place
from conformance.worker.protocols import Cluster, Implementation

BATCHES, SIZE = 8, 160
PRODUCTS = 500  # of the second stage, with the identity: long, and the values stay exact
DEADLINE_S = 120.0

ENQUEUED, AWAITED = "all stages enqueued", "each stage awaited"
# The first stage is done with the last microbatch before the second is with the last but one.
OVERLAPS = "overlaps"
OTHER_PROCESSES = "multi_controller.transfer-address tests several processes"


def batch(number: int) -> Any:
    """A microbatch: one number everywhere, so that its product with itself is exact."""
    return np.full((SIZE, SIZE), number + 1, np.float32)


@described("the largest number of each microbatch multiplied by itself, and one added")
def piped(place: Place) -> Any:
    return [np.float32(SIZE * (number + 1) ** 2 + 1) for number in range(BATCHES)]


def overlapped(wanted: bool) -> Any:
    """Expect that the first stage was ahead of the second, or that it was not."""
    said = "done with the last microbatch before the second stage is with the last but one"
    return noted(
        OVERLAPS,
        f"the first stage is {said}" if wanted else f"control: the first stage is not {said}",
        lambda _, seen: seen is wanted,
    )


class Pipeline:
    """Two stages on two devices, what they made, and whether they overlapped."""

    def __init__(self) -> None:
        self.devices = jax.local_devices()[:2]
        self.identity = jax.device_put(np.eye(SIZE, dtype=np.float32), self.devices[1])
        self.first = jax.jit(lambda x: x @ x)
        self.second = jax.jit(self.long)
        self.overlaps = False
        self.run(2, awaited=True)  # compiled before it counts: compiling holds up what is enqueued

    def long(self, x: Any, identity: Any) -> Any:
        """The second stage: the microbatch plus one, after much work that changes nothing."""
        return jax.lax.fori_loop(0, PRODUCTS, lambda _, kept: kept @ identity, x) + 1

    def run(self, batches: int, awaited: bool) -> Any:
        """Microbatches through both stages, each stage awaited or only enqueued."""
        halfway: list[Any] = []
        done: list[Any] = []
        for number in range(batches):
            halfway.append(self.first(jax.device_put(batch(number), self.devices[0])))
            if awaited:
                halfway[-1].block_until_ready()
            moved = jax.device_put(halfway[-1], self.devices[1])
            done.append(self.second(moved, self.identity))
            if awaited:
                done[-1].block_until_ready()
        halfway[-1].block_until_ready()
        self.overlaps = not done[-2].is_ready()
        return [np.asarray(one).max() for one in done]


@clause(
    "multi_controller.pipeline.overlap",
    claim="multi-process.pipeline-microbatches",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    left_out=OTHER_PROCESSES,
    expect=of_jax(
        every(
            in_steps(returns(piped), ENQUEUED, AWAITED),
            in_steps(overlapped(True), ENQUEUED),
            in_steps(overlapped(False), AWAITED),
        )
    ),
    deadline_s=DEADLINE_S,
)
def overlap(impl: Implementation, cluster: Cluster) -> None:
    """Eight microbatches pass two stages on two devices, enqueued at once, then one by one."""
    pipeline = Pipeline()
    for name, awaited in ((ENQUEUED, False), (AWAITED, True)):
        cluster.step(name, lambda awaited=awaited: pipeline.run(BATCHES, awaited))
        cluster.note(OVERLAPS, pipeline.overlaps)
