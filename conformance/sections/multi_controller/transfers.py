"""Arrays put from some devices to others, and pipelines made of such transfers.

Between CPU processes JAX transfers nothing unless it got an address for transfers at the start:
most of these cells see the error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.multi_controller import WIDTH, local_parts, row_of, spread
from conformance.spec.clause import devices, processes
from conformance.spec.columns import of_jax
from conformance.spec.combining import any_of
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises, returns, steps, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

ADDRESS = "the option that such transfers need must be set before the devices are used"

DEFAULTS = Defaults(topologies=ONE_AND_SEVERAL, left_out=ADDRESS)


def on(some: Any, *spec: str | None) -> Any:
    """A sharding over these devices in their order."""
    return spread(row_of(some), *spec)


def first_half(all_of: Any) -> Any:
    """The first half of something that has an entry per device."""
    return all_of[: len(all_of) // 2]


def second_half(all_of: Any) -> Any:
    """The second half of it."""
    return all_of[len(all_of) // 2 :]


def rows_on(place: Place, rows: Any, some: list[int]) -> list[Any]:
    """Return this process's part of rows that are one each on these devices, by their positions."""
    here = place.topology.devices_per_process
    own = range(place.first_row, place.first_row + here)
    lies = dict(zip(some, rows, strict=True))
    return [lies[device][None] for device in own if device in lies]


def numbers(place: Place) -> list[int]:
    """All devices by their numbers."""
    return list(range(place.topology.devices))


@described("the rows of the first half's devices, on the second half's")
def moved(place: Place) -> Any:
    rows = first_half(place.all_rows(WIDTH))
    return rows_on(place, rows, second_half(numbers(place)))


@described("the rows where they were")
def stayed(place: Place) -> Any:
    return rows_on(place, first_half(place.all_rows(WIDTH)), first_half(numbers(place)))


@described("each row on the device at the other end")
def reversed_rows(place: Place) -> Any:
    return rows_on(place, place.all_rows(WIDTH), numbers(place)[::-1])


@described("the rows where they were")
def unmoved(place: Place) -> Any:
    return rows_on(place, place.all_rows(WIDTH), numbers(place))


@described("the first row, on the last device")
def last_has_it(place: Place) -> Any:
    return rows_on(place, place.all_rows(WIDTH)[:1], numbers(place)[-1:])


@dataclass(frozen=True, slots=True)
class Move:
    """Rows on some devices, and where they are put: `source` and `target` choose of a list."""

    key: str
    text: str
    source: Callable[[Any], Any]
    target: Callable[[Any], Any]
    model: Model
    mistake: Model


MOVES: Mapping[str, Move] = table(
    Move(
        "halves",
        "from one half of the devices to the other",
        first_half,
        second_half,
        moved,
        stayed,
    ),
    Move(
        "one-device",
        "from the first device to the last",
        lambda all_of: all_of[:1],
        lambda all_of: all_of[-1:],
        last_has_it,
        stayed,
    ),
    Move(
        "reversed",
        "from all devices to all devices in reverse order",
        lambda all_of: all_of,
        lambda all_of: all_of[::-1],
        reversed_rows,
        unmoved,
    ),
)


@DEFAULTS.family(
    "multi_controller.device-put.{move}",
    move=MOVES,
    claim="multi-process.cross-process-device-put",
    title="An array is put {move.text}, by all processes.",
    fact="multi_controller.device-put",
    needs=devices(2),
    expect=lambda move: of_jax(
        twice(returns(move.model, mistakes={"the rows where they were": move.mistake}))
    ),
)
def put(impl: Implementation, cluster: Cluster, move: Move) -> None:
    """`device_put` from one sharding to another, of as many devices and equal shards."""
    everyone = jax.devices()
    rows = move.source(cluster.all_rows(WIDTH))
    array = jax.device_put(rows, on(move.source(everyone), "a"))
    cluster.twice(lambda: local_parts(jax.device_put(array, on(move.target(everyone), "a"))))


# --- Unsupported transfers ------------------------------------------------------------------------


# Which of the processes see the source, the target or neither decides who says what.
UNEQUAL = any_of(
    raises(ValueError, r"should have the same set of devices\. Got input's device set ids: "),
    raises(ValueError, r"a Device or a Sharding which represents addressable devices, but got "),
    raises(NotImplementedError, r"Cannot reshard an input that is not fully addressable"),
)


@dataclass(frozen=True, slots=True)
class Unequal:
    """The destination of half of the rows, which are on the first half of the devices."""

    key: str
    text: str
    target: Callable[[Any], Any]


UNEQUALS: Mapping[str, Unequal] = table(
    Unequal(
        "fewer", "one device of the second half", lambda all_of: on(second_half(all_of)[:1], "a")
    ),
    Unequal("more", "all devices, replicated", lambda all_of: on(all_of)),
    Unequal(
        "other-shape",
        "the second half of the devices, replicated",
        lambda all_of: on(second_half(all_of)),
    ),
)


@DEFAULTS.family(
    "multi_controller.device-put-unequal.{unequal}",
    unequal=UNEQUALS,
    claim="multi-process.cross-process-device-put-unequal",
    title="An array on the first half of the devices is put on {unequal.text}.",
    fact="multi_controller.device-put-unequal",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(twice(UNEQUAL)),
)
def put_unequal(impl: Implementation, cluster: Cluster, unequal: Unequal) -> None:
    """`device_put` across processes between shardings of other counts or shard shapes."""
    everyone = jax.devices()
    rows = first_half(cluster.all_rows(WIDTH))
    array = jax.device_put(rows, on(first_half(everyone), "a"))
    cluster.twice(lambda: local_parts(jax.device_put(array, unequal.target(everyone))))


# --- Pipelines ------------------------------------------------------------------------------------


def first_stage(x: Any) -> Any:
    """The first stage."""
    return 2 * x


def second_stage(x: Any) -> Any:
    """The second stage, which does not commute with the first."""
    return x + 1


@described("2x + 1 of the data, on the second half's devices")
def staged(place: Place) -> Any:
    rows = 2 * first_half(place.all_rows(WIDTH)) + 1
    return rows_on(place, rows, second_half(numbers(place)))


@described("what the first stage makes, on the first half's devices")
def once_staged(place: Place) -> Any:
    return rows_on(place, 2 * first_half(place.all_rows(WIDTH)), first_half(numbers(place)))


@described("the data as the second stage alone would make them")
def unstaged(place: Place) -> Any:
    rows = first_half(place.all_rows(WIDTH)) + 1
    return rows_on(place, rows, second_half(numbers(place)))


@DEFAULTS.clause(
    "multi_controller.pipeline.two-stages",
    claim="multi-process.pipeline-two-stages",
    needs=devices(2),
    expect=of_jax(
        steps(
            first_stage=returns(once_staged),
            second_stage=returns(staged, mistakes={"the second stage alone": unstaged}),
        )
    ),
)
def two_stages(impl: Implementation, cluster: Cluster) -> None:
    """A stage on one half of the devices, `device_put`, and a stage on the other half."""
    halves = [on(half(jax.devices()), "a") for half in (first_half, second_half)]
    x = jax.device_put(first_half(cluster.all_rows(WIDTH)), halves[0])
    f, g = jax.jit(first_stage), jax.jit(second_stage)
    made: list[Any] = []

    def first() -> Any:
        made.append(f(x))
        return local_parts(made[0])

    cluster.step("first stage", first)
    cluster.step("second stage", lambda: local_parts(g(jax.device_put(made[0], halves[1]))))


BATCHES, STAGES = 12, 4


def batches() -> list[Any]:
    """Microbatches of small whole numbers, all distinct."""
    numbers = np.arange(BATCHES * 4, dtype=np.float32).reshape(BATCHES, 2, 2)
    return list(numbers)


@described("every microbatch after four stages, 4x + 3, where the fourth device is")
def piped(place: Place) -> Any:
    last = STAGES - 1
    here = range(place.first_row, place.first_row + place.topology.devices_per_process)
    return [4 * one + 3 for one in batches()] if last in here else []


@DEFAULTS.clause(
    "multi_controller.pipeline.microbatches",
    claim="multi-process.pipeline-microbatches-values",
    needs=devices(4),
    expect=of_jax(twice(returns(piped))),
)
def microbatches(impl: Implementation, cluster: Cluster) -> None:
    """Twelve microbatches pass four stages, each on its own device."""
    f, g = jax.jit(first_stage), jax.jit(second_stage)
    stages, chosen = [f, g, f, g], jax.devices()[:STAGES]

    def run() -> Any:
        results = []
        for batch in batches():
            for device, stage in zip(chosen, stages, strict=True):
                batch = stage(jax.device_put(batch, device))
            results.append(batch)
        return [shard for result in results for shard in local_parts(result)]

    cluster.twice(run)
