"""Whether the microbatches of a pipeline overlap: two stages, each on a device of its own.

No clock decides. The second stage takes some hundred times as long as the first; so where they run
at once, the first has done the next microbatch before the second is done with its last. Where each
stage is awaited before the next is enqueued that cannot be: the control. (A callback in the stages
would tell more, but the CPU runs a program with a callback in the thread that calls it.)
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.topology import ONE_AND_SEVERAL, Place
from conformance.judging.columns import of_jax
from conformance.judging.expectation import every, in_steps, noted, returns

BATCHES, SIZE = 3, 256
PRODUCTS = 500  # of the second stage, with the identity: long, and the values stay exact
DEADLINE_S = 120.0

ENQUEUED, AWAITED = "all stages enqueued", "each stage awaited"
OVERLAPS = "overlaps"  # of each microbatch but the last: the next has left the first stage already
OTHER_PROCESSES = "multi_controller.transfer-address hands microbatches to other processes"


def batch(number: int) -> Any:
    """A microbatch: one number everywhere, so that its product with itself is exact."""
    return np.full((SIZE, SIZE), number + 1, np.float32)


def piped(place: Place) -> Any:
    """the largest number of each microbatch multiplied by itself, and one added"""
    return [np.float32(SIZE * (number + 1) ** 2 + 1) for number in range(BATCHES)]


def each_overlaps(wanted: bool) -> Any:
    """Whether the first stage was ahead of the second by a microbatch, each time."""
    said = "done with the next microbatch before the second stage is with its last"
    return noted(
        OVERLAPS,
        f"the first stage is {said}" if wanted else f"control: the first stage is never {said}",
        lambda _, seen: seen == [wanted] * (BATCHES - 1),
    )


class Pipeline:
    """Two stages on two devices, what they made, and whether they overlapped."""

    def __init__(self) -> None:
        self.devices = jax.local_devices()[:2]
        self.identity = jax.device_put(np.eye(SIZE, dtype=np.float32), self.devices[1])
        self.first = jax.jit(lambda x: x @ x)
        self.second = jax.jit(self.long)
        self.overlaps: list[bool] = []
        self.run(awaited=True)  # compiled before it counts: a compilation holds up what is enqueued

    def long(self, x: Any, identity: Any) -> Any:
        """The second stage: the microbatch plus one, after much work that changes nothing."""
        return jax.lax.fori_loop(0, PRODUCTS, lambda _, kept: kept @ identity, x) + 1

    def run(self, awaited: bool) -> Any:
        """All microbatches through both stages, each stage awaited or only enqueued."""
        halfway: list[Any] = []
        done: list[Any] = []
        for number in range(BATCHES):
            halfway.append(self.first(jax.device_put(batch(number), self.devices[0])))
            if awaited:
                halfway[-1].block_until_ready()
            moved = jax.device_put(halfway[-1], self.devices[1])
            done.append(self.second(moved, self.identity))
            if awaited:
                done[-1].block_until_ready()
        self.overlaps = []
        for following, one in zip(halfway[1:], done[:-1], strict=True):
            following.block_until_ready()
            self.overlaps.append(not one.is_ready())
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
            in_steps(each_overlaps(True), ENQUEUED),
            in_steps(each_overlaps(False), AWAITED),
        )
    ),
    deadline_s=DEADLINE_S,
)
def overlap(impl: Any, cluster: Any) -> None:
    """Three microbatches through two stages on two devices, enqueued at once, then one by one."""
    pipeline = Pipeline()
    for name, awaited in ((ENQUEUED, False), (AWAITED, True)):
        cluster.step(name, lambda awaited=awaited: pipeline.run(awaited))
        cluster.note(OVERLAPS, pipeline.overlaps)
