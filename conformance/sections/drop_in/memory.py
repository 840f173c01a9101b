"""What the replacements cost: the peak of memory, and where a stack lies before it is placed.

On CPU the devices' memory is the process's own, so one peak counts the host's copies and the
devices' alike, and a peak is given in multiples of the stacked array's bytes. Nothing is mapped.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import devices
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.columns import of_jax
from conformance.judging.expectation import (
    Expectation,
    Model,
    OfEachStep,
    every,
    noted,
    returns,
    steps,
)
from conformance.probing.memory import known_peak, peak_bytes
from conformance.sections.drop_in import (
    JNP,
    NP,
    ORIGINAL,
    REPLICATED,
    SHARDED,
    Replaced,
    Stacking,
    of_the_original,
    put_sharded,
)

MIB = 2**20
STACKED_BYTES = 32 * MIB  # of the array along the new leading axis
RESOLUTION = 0.1  # of a stacked array; the known allocation shows that a peak is as exact as that

WHOLE_STACK = "replacement-holds-the-whole-stack"

PEAK = "peak in stacked arrays"
ABOVE = "peak above the original's"

# What tells one stacked array more from none, where nothing else is claimed: half of one. A peak
# of the whole process has in it what else was allocated meanwhile, of which one run of jax 0.7.2
# had 0.104 of a stacked array where some thirty others had none.
HALF_AN_ARRAY = 0.5

# At most these are there at once: the shards as arrays of the default device, each of them with an
# axis more, the stack, and its parts.
MOST_ARRAYS = 4

ON_HOST = "migrate-pmap-later.np-stack-stays-on-host"
OWN_MEMORY = "a peak is that of one process's memory, whatever the others hold"


def between(
    least: float, most: float, text: str, key: str = PEAK, *, slack: float = RESOLUTION
) -> Expectation:
    """A peak of `least` to `most` stacked arrays, within the resolution, or `slack` above it."""
    return noted(key, text, lambda _, seen: least - RESOLUTION <= seen <= most + slack)


# What is measured comes back; its peak is what is noted of it.
MEASURED = OfEachStep(
    "comes back",
    lambda _, step: (step.raised is None, str(step)),
    claims=frozenset(),
)


KNOWN = between(1, 1, "a known allocation of one stacked array is measured as one")
# A CPU device takes a NumPy array that is aligned as it is, so that no copy is the least.
AVOIDED = between(0, 1, "no more than the result: one stacked array")
# What the replacement with jnp.stack needs.
STACKS_FIRST = every(
    steps(
        replacement=between(
            2, MOST_ARRAYS, "the whole stack and then its parts: two stacked arrays, up to four"
        )
    ),
    of_the_original(
        between(1, MOST_ARRAYS, "the replacement needs one stacked array more, or several", ABOVE)
    ),
)


def each_shard(place: Place) -> Any:
    """the least and the greatest element of each device's shard: 1, 1; 2, 2; ..."""
    count = place.topology.devices_per_process
    return np.repeat(np.arange(1, 1 + count, dtype=np.float32), 2).reshape(count, 2)


def each_copy(place: Place) -> Any:
    """the least and the greatest element of each device's copy: 1, 1"""
    return np.ones((place.topology.devices_per_process, 2), np.float32)


@dataclass(frozen=True, slots=True)
class Cost:
    """A replacement, what its peak must be, and what its result holds."""

    key: str
    title: str
    function: Replaced
    stacking: Stacking
    claim: str
    fact: str
    peak: Expectation
    held: Model


COSTS: Mapping[str, Cost] = table(
    Cost(
        "sharded",
        "The replacement of device_put_sharded holds the whole stack beside the result.",
        SHARDED,
        JNP,
        "migrate-pmap-later.replacements-stack-whole-array",
        "drop_in.memory.sharded",
        STACKS_FIRST,
        each_shard,
    ),
    Cost(
        "replicated",
        "The replacement of device_put_replicated holds all copies beside the result.",
        REPLICATED,
        JNP,
        "migrate-pmap-later.device-put-replicated-duplicates",
        "drop_in.memory.replicated",
        STACKS_FIRST,
        each_copy,
    ),
    Cost(
        "sharded.np-stack",
        "np.stack makes the stack on the host and no other copy but the result.",
        SHARDED,
        NP,
        ON_HOST,
        "drop_in.memory.np-stack",
        steps(
            replacement=between(
                1, 2, "the stack and its parts, no third array", slack=HALF_AN_ARRAY
            )
        ),
        each_shard,
    ),
    Cost(
        "replicated.np-stack",
        "np.stack makes the copies on the host and no others but the result.",
        REPLICATED,
        NP,
        ON_HOST,
        "drop_in.memory.np-stack",
        steps(
            replacement=between(
                1,
                2,
                "the copies on the host and those on the devices, no third array",
                slack=HALF_AN_ARRAY,
            )
        ),
        each_copy,
    ),
)


def measured(cost: Cost) -> Expectation:
    """The known allocation as known, the peak as it must be, and the result right."""
    return every(
        steps(known=MEASURED, replacement=MEASURED),
        steps(known=KNOWN, result=returns(cost.held)),
        cost.peak,
        of_the_original(MEASURED),
        of_the_original(AVOIDED),
    )


@family(
    "drop_in.memory.{cost}",
    cost=COSTS,
    claim="{cost.claim}",
    fact=lambda cost: cost.fact,
    cause=lambda cost: WHOLE_STACK if cost.stacking is JNP else "",
    title="{cost.title}",
    needs=devices(8),
    left_out=OWN_MEMORY,
    expect=lambda cost: of_jax(measured(cost)),
)
def peaks(impl: Any, cluster: Any, cost: Cost) -> None:
    """A known allocation, the replacement and the original are measured; then what came out."""
    impl.select()
    there = cluster.local_devices
    size = STACKED_BYTES // 4 // len(there)  # float32 elements of each row
    shards = [np.full(size, 1 + i, np.float32) for i in range(len(there))]
    argument: Any = shards if cost.function is SHARDED else shards[0]
    replacement, stack = cost.function.replacement, cost.stacking.stack

    def measure(step: str, put: Callable[..., Any], *more: Any) -> float:
        def call() -> Any:
            return jax.block_until_ready(put(argument, there, *more))

        peak = cluster.step(step, peak_bytes, call) / STACKED_BYTES
        cluster.note(PEAK, round(peak, 3))
        return float(peak)

    known = cluster.step("known", known_peak, STACKED_BYTES)
    cluster.note(PEAK, round(known / STACKED_BYTES, 3))
    mine = measure("replacement", replacement, stack)
    original = cost.function.original
    if original is not None:
        its = measure(ORIGINAL, original)
        cluster.note(ABOVE, round(mine - its, 3))

    def held() -> Any:
        result = replacement(argument, there, stack)
        shards = {s.device: np.asarray(s.data) for s in result.addressable_shards}
        return np.array([[shards[one].min(), shards[one].max()] for one in there])

    cluster.step("result", held)


# --- Where the stack lies before it is placed

STACK = "the stack"
PLACED = "most rows in one array on the default device"
WIDTH = 251  # of a row: no other array in the process is as wide

THROUGH_DEFAULT = "migrate-pmap-later.jnp-stack-through-default-device"


def rows_of(place: Place) -> Any:
    """this process's rows"""
    return place.rows(WIDTH)


STACKED = returns(rows_of)
ON_DEFAULT = every(
    steps(
        replacement=noted(
            STACK,
            "the stack is all of it on the default device",
            lambda _, seen: seen["on"] == [seen["default"]],
            parts=("on",),
        )
    ),
    steps(
        replacement_again=noted(
            PLACED,
            "the default device holds all rows at some time",
            lambda place, seen: seen == place.topology.devices_per_process,
        )
    ),
)
STAYS_ON_HOST = every(
    steps(
        replacement=noted(
            STACK, "the stack is on the host", lambda _, seen: seen["on"] == [], parts=("on",)
        )
    ),
    steps(
        replacement_again=noted(
            PLACED,
            "the default device holds its own row alone, as each goes straight to its device",
            lambda _, seen: seen == 1,
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Way:
    """NumPy shards, stacked while the local device number `default` is the default."""

    key: str
    title: str
    stacking: Stacking
    default: int
    claim: str
    fact: str
    lies: Expectation


WAYS: Mapping[str, Way] = table(
    Way(
        "jnp",
        "jnp.stack of NumPy shards puts all of them on the first device.",
        JNP,
        0,
        THROUGH_DEFAULT,
        "drop_in.stack.jnp",
        ON_DEFAULT,
    ),
    Way(
        "jnp.other-default",
        "jnp.stack of NumPy shards puts all of them on the default device, whichever that is.",
        JNP,
        -1,
        THROUGH_DEFAULT,
        "drop_in.stack.jnp",
        ON_DEFAULT,
    ),
    Way(
        "np",
        "np.stack of NumPy shards puts on a device nothing but its own shard.",
        NP,
        0,
        ON_HOST,
        "drop_in.stack.np",
        STAYS_ON_HOST,
    ),
)


@contextmanager
def most_rows_on(device: Any) -> Iterator[list[int]]:
    """The most rows in one array of `WIDTH` that lay on the device at one time, when it ends.

    Looked for at each Python function that JAX enters or leaves in between. What an earlier case
    left is collected first.
    """
    gc.collect()
    most = [0]

    def profile(frame: object, event: str, _: object) -> None:
        for array in jax.live_arrays():
            if array.is_deleted() or array.shape[1:] != (WIDTH,):
                continue
            for shard in array.addressable_shards:
                if shard.device == device:
                    most[0] = max(most[0], len(shard.data))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield most
    finally:
        sys.setprofile(before)


@family(
    "drop_in.stack.{way}",
    way=WAYS,
    claim="{way.claim}",
    fact=lambda way: way.fact,
    cause=lambda way: WHOLE_STACK if way.stacking is JNP else "",
    title="{way.title}",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=lambda way: of_jax(
        every(steps(replacement=STACKED, replacement_again=STACKED), way.lies)
    ),
)
def where_stacked(impl: Any, cluster: Any, way: Way) -> None:
    """The replacement: where its stack lies, then what the default device holds meanwhile."""
    there = cluster.local_devices
    default = there[way.default]
    seen: list[list[int]] = []

    def looked_at(leaves: Sequence[Any]) -> Any:
        stacked = way.stacking.stack(leaves)
        on_device = isinstance(stacked, jax.Array)
        seen.append([device.id for device in stacked.devices()] if on_device else [])
        return stacked

    rows = list(cluster.rows(WIDTH))
    with jax.default_device(default):
        cluster.step("replacement", put_sharded, rows, there, looked_at)
        cluster.note(STACK, {"on": seen[-1], "default": default.id})

        def watched() -> Any:
            with most_rows_on(default) as most:
                result = jax.block_until_ready(put_sharded(rows, there, way.stacking.stack))
            counted.append(most[0])
            return result

        counted: list[int] = []
        cluster.step("replacement again", watched)
        cluster.note(PLACED, counted[-1])
