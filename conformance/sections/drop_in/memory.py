"""What the replacements cost: the peak of memory, and where a stack lies before it is placed.

On CPU the devices' memory is the process's own, so one peak counts the host's copies and the
devices' alike, and a peak is given in multiples of the stacked array's bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    every,
    noted,
    raises,
    returns,
    steps,
    steps_if_taken,
)
from conformance.probing.memory import known_peak, peak_bytes
from conformance.sections.drop_in import (
    REPLACEMENTS,
    REPLICATED,
    SHARDED,
    put_sharded,
    stack_of,
)

MIB = 2**20
STACKED_BYTES = 32 * MIB  # of the array along the new leading axis
SHOWN = 4  # elements of each row that the map gives back, as the whole would be too much to carry
RESOLUTION = 0.1  # of a stacked array; the known allocation shows that a peak is as exact as that

PEAK = "peak in stacked arrays"
ABOVE = "peak above the original's"

WHOLE = "migrate-pmap-later.replacements-stack-whole-array"
DUPLICATES = "migrate-pmap-later.device-put-replicated-duplicates"
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


def row_length(count: int) -> int:
    """The float32 elements of each of `count` rows."""
    return STACKED_BYTES // 4 // count


def first_rows(place: Place) -> Any:
    """the first elements of each shard, doubled"""
    count = place.topology.devices_per_process
    return np.repeat(np.arange(1, 1 + count, dtype=np.float32), SHOWN).reshape(count, SHOWN) * 2


def first_copies(place: Place) -> Any:
    """the first elements of each copy, doubled"""
    return np.full((place.topology.devices_per_process, SHOWN), 2, np.float32)


def costs(impl: Any, cluster: Any, name: str, stack: str) -> None:
    """A known allocation, the replacement and the original are measured; a map takes the result."""
    impl.select()
    there = cluster.local_devices
    size = row_length(len(there))
    shards = [np.full(size, 1 + i, np.float32) for i in range(len(there))]
    argument: Any = shards if name == SHARDED else shards[0]

    def measured(step: str, function: Callable[..., Any], *more: Any) -> float:
        def call() -> Any:
            return jax.block_until_ready(function(argument, there, *more))

        peak = cluster.step(step, peak_bytes, call) / STACKED_BYTES
        cluster.note(PEAK, round(peak, 3))
        return float(peak)

    known = cluster.step("known", known_peak, STACKED_BYTES)
    cluster.note(PEAK, round(known / STACKED_BYTES, 3))
    mine = measured("replacement", REPLACEMENTS[name], stack_of(stack))
    original = getattr(jax, name, None)
    if original is not None:
        its = measured("original", original)
        cluster.note(ABOVE, round(mine - its, 3))
    result = REPLACEMENTS[name](argument, there, stack_of(stack))
    cluster.twice(impl.map(lambda x: x[:SHOWN] * 2), result)


def _cost(id: str, claim: str, name: str, stack: str, title: str, *parts: Expectation) -> None:
    rows = first_rows if name == SHARDED else first_copies
    clause(
        id,
        claim=claim,
        needs=devices(8),
        parameters={"name": name, "stack": stack},
        title=title,
        expect=dict.fromkeys(
            IMPLEMENTATIONS,
            every(
                steps(known=KNOWN),
                *parts,
                steps_if_taken(original=AVOIDED),
                steps(first_call=returns(rows), second_call=returns(rows)),
            ),
        ),
    )(costs)


_TWO = at_least(2, "the whole stack and then its parts: two stacked arrays, or more")

_cost(
    "drop_in.memory.sharded",
    WHOLE,
    SHARDED,
    "jnp",
    "The replacement of device_put_sharded holds the whole stack beside the result.",
    steps(replacement=_TWO),
    steps_if_taken(original=one_more()),
)
_cost(
    "drop_in.memory.replicated",
    DUPLICATES,
    REPLICATED,
    "jnp",
    "The replacement of device_put_replicated holds all copies beside the result.",
    steps(replacement=_TWO),
    steps_if_taken(original=one_more()),
)
_cost(
    "drop_in.memory.sharded.np-stack",
    ON_HOST,
    SHARDED,
    "np",
    "np.stack makes the stack on the host and no other copy but the result.",
    steps(replacement=at_most(2, "the stack and its parts, nothing else")),
)
_cost(
    "drop_in.memory.replicated.np-stack",
    ON_HOST,
    REPLICATED,
    "np",
    "np.stack makes the copies on the host and no others but the result.",
    steps(replacement=at_most(2, "the copies on the host and those on the devices, nothing else")),
)


# --- Where the stack lies before it is placed

STACK = "the stack"
WIDTH = 3


def shards_doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(WIDTH) * 2


def rows_of(place: Place) -> Any:
    """this process's rows"""
    return place.rows(WIDTH)


def on_default(place: Place, seen: Any) -> bool:
    """All of the stack on the default device, uncommitted."""
    size = place.rows(WIDTH).nbytes
    return bool(seen == {"on": [seen["default"]], "bytes": size, "default": seen["default"]})


def on_host(place: Place, seen: Any) -> bool:
    """A NumPy array, and nothing new on any device."""
    return bool(seen["on"] == "host" and seen["bytes"] == 0)


def held_on(device: Any) -> int:
    """The bytes of all arrays on a device."""
    gc.collect()
    return sum(
        shard.data.nbytes
        for array in jax.live_arrays()
        for shard in array.addressable_shards
        if shard.device == device
    )


def where_stacked(impl: Any, cluster: Any, stack: str, default: int) -> None:
    """The replacement with a stack that is looked at before it is placed, then a map."""
    there = cluster.local_devices
    seen: list[dict[str, Any]] = []

    def looked_at(leaves: Sequence[Any]) -> Any:
        before = held_on(there[default])
        stacked = stack_of(stack)(leaves)
        on: Any = "host"
        if isinstance(stacked, jax.Array):
            jax.block_until_ready(stacked)
            on = [device.id for device in stacked.devices()]
        held = held_on(there[default]) - before
        seen.append({"on": on, "bytes": held, "default": there[default].id})
        return stacked

    rows = list(cluster.rows(WIDTH))
    result = None
    for step in ("replacement", "replacement again"):
        with jax.default_device(there[default]):
            result = cluster.step(step, put_sharded, rows, there, looked_at)
        cluster.note(STACK, seen[-1])
    cluster.twice(impl.map(lambda x: x * 2), result)


def _where(id: str, claim: str, stack: str, default: int, title: str, lies: Expectation) -> None:
    clause(
        id,
        claim=claim,
        needs=devices(8),
        parameters={"stack": stack, "default": default},
        title=title,
        expect=dict.fromkeys(
            IMPLEMENTATIONS,
            every(
                steps(replacement=returns(rows_of), replacement_again=returns(rows_of)),
                steps(replacement=lies, replacement_again=lies),
                steps(first_call=returns(shards_doubled), second_call=returns(shards_doubled)),
            ),
        ),
    )(where_stacked)


_ON_DEFAULT = noted(STACK, "all of it on the default device first", on_default)
_ON_HOST = noted(STACK, "on the host, and nothing on the device", on_host)
_THROUGH = "migrate-pmap-later.jnp-stack-through-default-device"

_where(
    "drop_in.stack.jnp",
    _THROUGH,
    "jnp",
    0,
    "jnp.stack of NumPy shards puts all of them on the first device.",
    _ON_DEFAULT,
)
_where(
    "drop_in.stack.jnp.other-default",
    _THROUGH,
    "jnp",
    3,
    "jnp.stack of NumPy shards puts all of them on the default device, whichever that is.",
    _ON_DEFAULT,
)
_where(
    "drop_in.stack.np",
    ON_HOST,
    "np",
    0,
    "np.stack of NumPy shards puts nothing on a device.",
    _ON_HOST,
)


_STACKED = returns(rows_of)
_NEEDS_HOST = raises("TracerArrayConversionError", "numpy", otherwise=rows_of)


@clause(
    "drop_in.stack.jax-arrays",
    claim="migrate-pmap-later.jnp-stack-for-jax-arrays",
    needs=devices(2),
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(with_jnp=_STACKED, with_jnp_again=_STACKED),
            steps(with_np=_NEEDS_HOST),
            steps(first_call=returns(shards_doubled), second_call=returns(shards_doubled)),
        ),
    ),
)
def jax_arrays(impl: Any, cluster: Any) -> None:
    """jnp.stack works where no value can be had on the host, under jit; np.stack does not."""
    there = cluster.local_devices
    shards = [jax.numpy.asarray(row) for row in cluster.rows(WIDTH)]

    def stacked(name: str) -> Any:
        stack = stack_of(name)
        return jax.jit(lambda *leaves: stack(leaves))

    cluster.twice(impl.map(lambda x: x * 2), put_sharded(shards, there, stack_of("jnp")))
    for step in ("with jnp", "with jnp again"):
        cluster.step(step, stacked("jnp"), *shards)
    cluster.step("with np", stacked("np"), *shards)
