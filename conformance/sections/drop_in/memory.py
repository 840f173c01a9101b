"""Peak memory of the replacements.

On CPU the devices' memory is the process's own, so that one peak counts copies on the host and on
devices; it is given in multiples of the stacked array's bytes. No function is mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.drop_in import (
    BROADCAST,
    BY_BROADCAST,
    JNP,
    NP,
    ON_HOST,
    ORIGINAL,
    REPLICATED,
    SHARDED,
    WHOLE_STACK,
    Replaced,
    Stacking,
    of_the_original,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.combining import of_result
from conformance.spec.comparing import Model
from conformance.spec.expectation import every, noted, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.memory import known_peak, peak_bytes
from conformance.worker.protocols import Cluster, Implementation

MIB = 2**20
STACKED_BYTES = 32 * MIB  # of the array along the new leading axis
RESOLUTION = 0.1  # of a stacked array; the known allocation shows that a peak is as exact as that

PEAK = "peak in stacked arrays"
ABOVE = "peak above the original's"

# What tells one stacked array more from none, where nothing else is claimed: half of one. A peak
# of the whole process has in it what else was allocated meanwhile, of which one run of jax 0.7.2
# had 0.104 of a stacked array where some thirty others had none.
HALF_AN_ARRAY = 0.5

# At most these are there at once: the shards as arrays of the default device, each of them with an
# axis more, the stack, its slices on the default device, and its parts on their own. How many of
# them are let go before the next are made is a matter of threads: 2.3 to 4.3 were seen.
MOST_ARRAYS = 5

OWN_MEMORY = "the peak is that of one process's memory"


def between(
    least: float, most: float, text: str, key: str = PEAK, *, slack: float = RESOLUTION
) -> Expectation:
    """A peak of `least` to `most` stacked arrays, within the resolution, or `slack` above it."""
    return noted(key, text, lambda _, seen: least - RESOLUTION <= seen <= most + slack)


# Return the measured result; its peak is noted.
MEASURED = of_result("comes back", lambda _, step: (True, str(step)), claims=())


KNOWN = between(1, 1, "a known allocation of one stacked array is measured as one")
# A CPU device takes a NumPy array that is aligned as it is, so that no copy is the least.
AVOIDED = between(0, 1, "no more than the result: one stacked array")
# Needed by the replacement with jnp.stack.
STACKS_FIRST = every(
    steps(
        replacement=between(
            2, MOST_ARRAYS, "the whole stack and then its parts: two stacked arrays, up to five"
        )
    ),
    of_the_original(
        between(1, MOST_ARRAYS, "the replacement needs one stacked array more, or several", ABOVE)
    ),
)


@described("the least and the greatest element of each device's shard: 1, 1; 2, 2; ...")
def each_shard(place: Place) -> Any:
    count = place.topology.devices_per_process
    return np.repeat(np.arange(1, 1 + count, dtype=np.float32), 2).reshape(count, 2)


@described("the least and the greatest element of each device's copy: 1, 1")
def each_copy(place: Place) -> Any:
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
        "At the peak, the replacement of device_put_sharded holds the whole stack beside "
        "the result.",
        SHARDED,
        JNP,
        "migrate-pmap-later.replacements-stack-whole-array",
        "drop_in.memory.sharded",
        STACKS_FIRST,
        each_shard,
    ),
    Cost(
        "replicated",
        "At the peak, the replacement of device_put_replicated holds all copies beside the result.",
        REPLICATED,
        JNP,
        "migrate-pmap-later.device-put-replicated-duplicates",
        "drop_in.memory.replicated",
        STACKS_FIRST,
        each_copy,
    ),
    Cost(
        "sharded.np-stack",
        "np.stack makes the stack on the host; on devices there is only the result.",
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
        "np.stack makes the copies on the host; on devices there is only the result.",
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
    Cost(
        "replicated.np-broadcast",
        "np.broadcast_to makes no copies on the host: at the peak there is only the result.",
        REPLICATED,
        BROADCAST,
        BY_BROADCAST,
        "drop_in.memory.np-broadcast",
        steps(replacement=between(0, 1, "no more than the result", slack=HALF_AN_ARRAY)),
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
    cause=lambda cost: WHOLE_STACK if cost.stacking is JNP else "",
    title="{cost.title}",
    needs=devices(8),
    left_out=OWN_MEMORY,
    expect=lambda cost: of_jax(measured(cost)),
)
def peaks(impl: Implementation, cluster: Cluster, cost: Cost) -> None:
    """A known allocation, the replacement and the original are measured; then what came out."""
    impl.select()
    there = cluster.local_devices
    size = STACKED_BYTES // 4 // len(there)  # float32 elements of each row
    shards = [np.full(size, 1 + i, np.float32) for i in range(len(there))]
    argument: Any = shards if cost.function is SHARDED else shards[0]
    replacement, stack = cost.function.replacement, cost.stacking.stack

    def measure(step: str, peak: Callable[..., int], *args: Any) -> float | None:
        resident = cluster.step(step, peak, *args)
        if resident is None:
            return None
        cluster.note(PEAK, round(resident / STACKED_BYTES, 3))
        return resident / STACKED_BYTES

    def put(function: Callable[..., Any], *more: Any) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(function(argument, there, *more))

    measure("known", known_peak, STACKED_BYTES)
    mine = measure("replacement", peak_bytes, put(replacement, stack))
    original = cost.function.original
    if original is not None:
        its = measure(ORIGINAL, peak_bytes, put(original))
        if mine is not None and its is not None:
            cluster.note(ABOVE, round(mine - its, 3))

    def ends_by_device() -> Any:
        result = replacement(argument, there, stack)
        shards = {s.device: np.asarray(s.data) for s in result.addressable_shards}
        return np.array([[shards[one].min(), shards[one].max()] for one in there])

    cluster.step("result", ends_by_device)
