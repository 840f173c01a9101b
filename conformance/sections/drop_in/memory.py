"""What the replacements cost: the peak of memory, and where a stack lies before it is placed.

On CPU the devices' memory is the process's own, so one peak counts the host's copies and the
devices' alike, and a peak is given in multiples of the stacked array's bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import Place
from conformance.judging.columns import everywhere
from conformance.judging.expectation import (
    Expectation,
    Model,
    every,
    noted,
    raises,
    returns,
    steps,
    steps_if_taken,
)
from conformance.probing.bodies import double, doubled
from conformance.probing.memory import known_peak, peak_bytes
from conformance.sections.drop_in import (
    JNP,
    NP,
    REPLICATED,
    SHARDED,
    Replaced,
    Stacking,
    put_sharded,
)

MIB = 2**20
STACKED_BYTES = 32 * MIB  # of the array along the new leading axis
SHOWN = 4  # elements of each row that the map gives back, as the whole would be too much to carry
RESOLUTION = 0.1  # of a stacked array; the known allocation shows that a peak is as exact as that

PEAK = "peak in stacked arrays"
ABOVE = "peak above the original's"

ON_HOST = "migrate-pmap-later.np-stack-stays-on-host"


def about(wanted: float, text: str) -> Expectation:
    """A peak of `wanted` stacked arrays, within the resolution."""
    return noted(PEAK, text, lambda _, seen: abs(seen - wanted) <= RESOLUTION)


def at_least(least: float, text: str) -> Expectation:
    """A peak of `least` stacked arrays or more, within the resolution."""
    return noted(PEAK, text, lambda _, seen: seen >= least - RESOLUTION)


def at_most(most: float, text: str) -> Expectation:
    """A peak of `most` stacked arrays or less, within the resolution."""
    return noted(PEAK, text, lambda _, seen: seen <= most + RESOLUTION)


def one_more() -> Expectation:
    """The replacement needs at least one stacked array more than the original."""
    text = "the replacement's peak is the original's and one stacked array more, or higher"
    return noted(ABOVE, text, lambda _, seen: seen >= 1 - RESOLUTION)


KNOWN = about(1, "a known allocation of one stacked array is measured as one")
AVOIDED = at_most(1, "no more than the result: one stacked array")
# What the replacement with jnp.stack needs.
TWO_OR_MORE = every(
    steps(
        replacement=at_least(2, "the whole stack and then its parts: two stacked arrays, or more")
    ),
    steps_if_taken(original=one_more()),
)


def first_of_shards(place: Place) -> Any:
    """the first elements of each shard, doubled"""
    count = place.topology.devices_per_process
    return np.repeat(np.arange(1, 1 + count, dtype=np.float32), SHOWN).reshape(count, SHOWN) * 2


def first_of_copies(place: Place) -> Any:
    """the first elements of each copy, doubled"""
    return np.full((place.topology.devices_per_process, SHOWN), 2, np.float32)


@dataclass(frozen=True, slots=True)
class Cost:
    """A replacement, what its peak must be, and what the map then makes of the first elements."""

    key: str
    title: str
    function: Replaced
    stacking: Stacking
    claim: str
    fact: str
    peak: Expectation
    mapped: Model


COSTS: Mapping[str, Cost] = table(
    Cost(
        "sharded",
        "The replacement of device_put_sharded holds the whole stack beside the result.",
        SHARDED,
        JNP,
        "migrate-pmap-later.replacements-stack-whole-array",
        "drop_in.memory.sharded",
        TWO_OR_MORE,
        first_of_shards,
    ),
    Cost(
        "replicated",
        "The replacement of device_put_replicated holds all copies beside the result.",
        REPLICATED,
        JNP,
        "migrate-pmap-later.device-put-replicated-duplicates",
        "drop_in.memory.replicated",
        TWO_OR_MORE,
        first_of_copies,
    ),
    Cost(
        "sharded.np-stack",
        "np.stack makes the stack on the host and no other copy but the result.",
        SHARDED,
        NP,
        ON_HOST,
        "drop_in.memory.np-stack",
        steps(replacement=at_most(2, "the stack and its parts, nothing else")),
        first_of_shards,
    ),
    Cost(
        "replicated.np-stack",
        "np.stack makes the copies on the host and no others but the result.",
        REPLICATED,
        NP,
        ON_HOST,
        "drop_in.memory.np-stack",
        steps(
            replacement=at_most(2, "the copies on the host and those on the devices, nothing else")
        ),
        first_of_copies,
    ),
)


def measured(cost: Cost) -> Expectation:
    """The known allocation as known, the peak as it must be, and the map right."""
    first = returns(cost.mapped)
    return every(
        steps(known=KNOWN),
        cost.peak,
        steps_if_taken(original=AVOIDED),
        steps(first_call=first, second_call=first),
    )


@family(
    "drop_in.memory.{cost}",
    cost=COSTS,
    claim="{cost.claim}",
    fact=lambda cost: cost.fact,
    title="{cost.title}",
    needs=devices(8),
    expect=lambda cost: everywhere(measured(cost)),
)
def peaks(impl: Any, cluster: Any, cost: Cost) -> None:
    """A known allocation, the replacement and the original are measured; a map takes the result."""
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
        its = measure("original", original)
        cluster.note(ABOVE, round(mine - its, 3))
    result = replacement(argument, there, stack)
    cluster.twice(impl.map(lambda x: x[:SHOWN] * 2), result)


# --- Where the stack lies before it is placed

STACK = "the stack"
WIDTH = 3

THROUGH_DEFAULT = "migrate-pmap-later.jnp-stack-through-default-device"


def rows_of(place: Place) -> Any:
    """this process's rows"""
    return place.rows(WIDTH)


def _on_default(place: Place, seen: Any) -> bool:
    size = place.rows(WIDTH).nbytes
    return bool(seen == {"on": [seen["default"]], "bytes": size, "default": seen["default"]})


def _on_host(place: Place, seen: Any) -> bool:
    return bool(seen["on"] == "host" and seen["bytes"] == 0)


LIES_ON_DEFAULT = noted(STACK, "all of it on the default device first", _on_default)
LIES_ON_HOST = noted(STACK, "on the host, and nothing on the device", _on_host)

STACKED = returns(rows_of)
MAPPED = steps(first_call=returns(doubled(WIDTH)), second_call=returns(doubled(WIDTH)))


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
        LIES_ON_DEFAULT,
    ),
    Way(
        "jnp.other-default",
        "jnp.stack of NumPy shards puts all of them on the default device, whichever that is.",
        JNP,
        3,
        THROUGH_DEFAULT,
        "drop_in.stack.jnp",
        LIES_ON_DEFAULT,
    ),
    Way(
        "np",
        "np.stack of NumPy shards puts nothing on a device.",
        NP,
        0,
        ON_HOST,
        "drop_in.stack.np",
        LIES_ON_HOST,
    ),
)


def held_on(device: Any) -> int:
    """The bytes of all arrays on a device."""
    gc.collect()
    return sum(
        shard.data.nbytes
        for array in jax.live_arrays()
        for shard in array.addressable_shards
        if shard.device == device
    )


@family(
    "drop_in.stack.{way}",
    way=WAYS,
    claim="{way.claim}",
    fact=lambda way: way.fact,
    title="{way.title}",
    needs=devices(8),
    expect=lambda way: everywhere(
        every(
            steps(replacement=STACKED, replacement_again=STACKED),
            steps(replacement=way.lies, replacement_again=way.lies),
            MAPPED,
        )
    ),
)
def where_stacked(impl: Any, cluster: Any, way: Way) -> None:
    """The replacement with a stack that is looked at before it is placed, then a map."""
    there = cluster.local_devices
    default = there[way.default]
    seen: list[dict[str, Any]] = []

    def looked_at(leaves: Sequence[Any]) -> Any:
        before = held_on(default)
        stacked = way.stacking.stack(leaves)
        on: Any = "host"
        if isinstance(stacked, jax.Array):
            jax.block_until_ready(stacked)
            on = [device.id for device in stacked.devices()]
        held = held_on(default) - before
        seen.append({"on": on, "bytes": held, "default": default.id})
        return stacked

    rows = list(cluster.rows(WIDTH))
    result = None
    for step in ("replacement", "replacement again"):
        with jax.default_device(default):
            result = cluster.step(step, put_sharded, rows, there, looked_at)
        cluster.note(STACK, seen[-1])
    cluster.twice(impl.map(double()), result)


NEEDS_HOST = raises("TracerArrayConversionError", "numpy", otherwise=rows_of)


@clause(
    "drop_in.stack.jax-arrays",
    claim="migrate-pmap-later.jnp-stack-for-jax-arrays",
    needs=devices(2),
    expect=everywhere(
        every(
            steps(with_jnp=STACKED, with_jnp_again=STACKED),
            steps(with_np=NEEDS_HOST),
            MAPPED,
        )
    ),
)
def jax_arrays(impl: Any, cluster: Any) -> None:
    """jnp.stack works where no value can be had on the host, under jit; np.stack does not."""
    there = cluster.local_devices
    shards = [jax.numpy.asarray(row) for row in cluster.rows(WIDTH)]

    def jitted(stacking: Stacking) -> Any:
        return jax.jit(lambda *leaves: stacking.stack(leaves))

    cluster.twice(impl.map(double()), put_sharded(shards, there, JNP.stack))
    for step in ("with jnp", "with jnp again"):
        cluster.step(step, jitted(JNP), *shards)
    cluster.step("with np", jitted(NP), *shards)
