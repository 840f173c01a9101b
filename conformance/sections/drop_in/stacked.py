"""The device of a stack of NumPy shards before it is put on its devices. No function is mapped."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax

from conformance.sections.drop_in import JNP, NP, ON_HOST, WHOLE_STACK, Stacking, put_sharded
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, noted, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation

STACK = "the stack"
PLACED = "most rows in one array on the default device"
WIDTH = 251  # of a row: no other array in the process is as wide

THROUGH_DEFAULT = "migrate-pmap-later.jnp-stack-through-default-device"


@described("this process's rows")
def rows_of(place: Place) -> Any:
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
        "jnp.stack of NumPy shards puts all of them on the default device, also where "
        "that is not the first.",
        JNP,
        -1,
        THROUGH_DEFAULT,
        "drop_in.stack.jnp",
        ON_DEFAULT,
    ),
    Way(
        "np",
        "np.stack of NumPy shards puts only its own shard on each device.",
        NP,
        0,
        ON_HOST,
        "drop_in.stack.np",
        STAYS_ON_HOST,
    ),
)


@contextmanager
def most_rows_on(device: Any) -> Iterator[list[int]]:
    """Yield a list that holds, at the end, the most rows in one array of `WIDTH` on the device at
    one time.

    The arrays are looked up whenever JAX enters or leaves a Python function. Garbage of an earlier
    case is collected first.
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
    cause=lambda way: WHOLE_STACK if way.stacking is JNP else "",
    title="{way.title}",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=lambda way: of_jax(
        every(steps(replacement=STACKED, replacement_again=STACKED), way.lies)
    ),
)
def where_stacked(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """Call the replacement: note the device of its stack, then what the default device holds
    meanwhile.
    """
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
