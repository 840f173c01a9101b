"""The first of what was meant to be equal copies: flax's `unreplicate`, and `x[0]` by hand.

A table of what users hand to either, each against NumPy's `x[0]`, because the document says that
the two are one. Where it also says how the result lies, that is checked too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import (
    Expectation,
    every,
    noted,
    raises,
    returns,
    sharded,
)

SAME = "migrate-pmap.unreplicate-is-index-zero"

SIZE = 3
ONE_AND_TWO = ("1x8", "2x2")
KEYS = 2  # numbers in a PRNG key's data

Made = Callable[[Any, Any], Any]
Model = Callable[[Place], Any]


ON_ONE_DEVICE = sharded(
    "SingleDeviceSharding", lambda place, s: s["type"] == "SingleDeviceSharding"
)


def _replicated_over(text: str, count: Callable[[Place], int]) -> Expectation:
    return sharded(
        f"fully replicated over {text}",
        lambda place, s: (
            s["type"] == "NamedSharding"
            and not any(s["spec"])
            and len(s["devices"]) == count(place)
        ),
    )


REPLICATED_HERE = _replicated_over(
    "this process's devices", lambda place: place.topology.devices_per_process
)
REPLICATED = _replicated_over("all devices", lambda place: place.topology.devices)
BY_COLUMNS = sharded(
    "sharded as before, along what was the second dimension",
    lambda place, s: s.get("spec") == ["i"],
)

WHOLE_EACH = {NEW_PMAP: REPLICATED_HERE, SHARD_MAP: REPLICATED}
ONE_ROW_EACH = {LEGACY_PMAP: ON_ONE_DEVICE} | WHOLE_EACH
COLUMN_EACH = {NEW_PMAP: BY_COLUMNS, SHARD_MAP: BY_COLUMNS}


# --- What is handed over --------------------------------------------------------------------------


def rows(impl: Any, cluster: Any) -> Any:
    """A map's output, one row per device."""
    return impl.map(lambda x: x * 2)(impl.given(cluster.rows(SIZE)))


def copies(impl: Any, cluster: Any) -> Any:
    """A map's output whose rows are all equal: a sum over all devices."""
    return impl.map(lambda x: jax.lax.psum(x, "i"))(impl.given(cluster.rows(SIZE)))


def tree(impl: Any, cluster: Any) -> Any:
    """A map's output with two leaves, as a training state has."""
    function = impl.map(lambda x: {"a": x * 2, "b": (x.sum(),)})
    return function(impl.given(cluster.rows(SIZE)))


def subset(impl: Any, cluster: Any) -> Any:
    """The output of a map over the second half of the devices."""
    half = len(cluster.local_devices) // 2
    function = impl.map(lambda x: x * 2, devices=cluster.local_devices[half:])
    return function(cluster.rows(SIZE)[half:])


def one_device(impl: Any, cluster: Any) -> Any:
    """The output of a map over one device."""
    function = impl.map(lambda x: x * 2, devices=cluster.local_devices[1:2])
    return function(cluster.rows(SIZE)[1:2])


def columns(impl: Any, cluster: Any) -> Any:
    """A map's output with `out_axes=1`: one column per device."""
    return impl.map(lambda x: x * 2, out_axes=1)(impl.given(cluster.rows(SIZE)))


def unmapped(impl: Any, cluster: Any) -> Any:
    """A map's output with `out_axes=None`: replicated, without a leading axis to drop."""
    function = impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)
    return function(impl.given(cluster.rows(SIZE)))


def two_rows(impl: Any, cluster: Any) -> Any:
    """A map's output with two rows on each device (for pmap, a stack of pairs of rows)."""
    data = cluster.rows(2, SIZE)
    if impl.is_pmap:
        return impl.map(lambda x: x * 2)(data)
    function = jax.jit(
        jax.shard_map(
            lambda x: x * 2,
            mesh=impl.mesh(),
            in_specs=jax.sharding.PartitionSpec("i"),
            out_specs=jax.sharding.PartitionSpec("i"),
        )
    )
    return impl.adopt(function, "jit(shard_map)")(data.reshape(-1, SIZE))


def put(sharding: Callable[[Any, Any], Any]) -> Made:
    """Rows that no map returned, put somewhere; a map ran before, as proof of where we are."""

    def made(impl: Any, cluster: Any) -> Any:
        rows(impl, cluster)
        return jax.device_put(cluster.rows(SIZE), sharding(impl, cluster))

    return made


def numpy_rows(impl: Any, cluster: Any) -> Any:
    """A NumPy array."""
    rows(impl, cluster)
    return cluster.rows(SIZE)


def number(impl: Any, cluster: Any) -> Any:
    """One number, replicated: a loss that the map has averaged."""
    function = impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)
    return function(impl.given(cluster.rows()))


def keys(impl: Any, cluster: Any) -> Any:
    """Typed PRNG keys, one per device, split by a map."""
    data = cluster.all_rows(KEYS, dtype=np.uint32)
    function = impl.map(lambda x: jax.random.wrap_key_data(x, impl="threefry2x32"))
    return function(data)


def raw_keys(impl: Any, cluster: Any) -> Any:
    """Raw PRNG keys, one per device."""
    return impl.map(lambda x: x + x)(cluster.all_rows(KEYS, dtype=np.uint32))


@dataclass(frozen=True, slots=True)
class Kind:
    """What is handed over, NumPy's `x[0]` of it, and where the document says that this lies."""

    name: str
    said: str
    made: Made
    model: Model | None
    lies: Mapping[str, Expectation] | None = None
    topologies: tuple[str, ...] = ONE_PROCESS
    shard_map_model: Model | None = None

    def expected(self) -> dict[str, Expectation]:
        """The model's values under each implementation; IndexError where there is no `x[0]`."""
        if self.model is None:
            nothing = raises(IndexError, "[Tt]oo many ind", otherwise=lambda p: p.all_rows().sum())
            return dict.fromkeys(IMPLEMENTATIONS, nothing)
        found: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(self.model))
        found[SHARD_MAP] = returns(self.shard_map_model or self.model)
        for name, where in (self.lies or {}).items():
            found[name] = every(found[name], where)
        return found


def first(place: Place) -> Any:
    """the first row of this process's rows"""
    return place.rows(SIZE)[0] * 2


def first_of_all(place: Place) -> Any:
    """the first row of all rows"""
    return place.all_rows(SIZE)[0] * 2


def total(place: Place) -> Any:
    """the sum of all rows"""
    return place.all_rows(SIZE).sum(0)


def as_put(place: Place) -> Any:
    """the first of the rows that were put"""
    return place.rows(SIZE)[0]


def _half(place: Place) -> Any:
    return place.rows(SIZE)[place.topology.devices_per_process // 2] * 2


KINDS = {
    kind.name: kind
    for kind in (
        Kind("rows", "a map's output", rows, first, ONE_ROW_EACH, ONE_AND_TWO, first_of_all),
        Kind(
            "copies",
            "a map's output whose rows are equal",
            copies,
            total,
            ONE_ROW_EACH,
            ONE_AND_TWO,
        ),
        Kind(
            "tree",
            "a map's output of two leaves",
            tree,
            lambda place: [first(place), place.rows(SIZE)[0].sum()],
            ONE_ROW_EACH,
        ),
        Kind("subset", "the output of a map over half of the devices", subset, _half),
        Kind(
            "one-device",
            "the output of a map over one device",
            one_device,
            lambda place: place.rows(SIZE)[1] * 2,
        ),
        Kind(
            "out-axes-1",
            "a map's output with out_axes=1",
            columns,
            lambda place: place.rows(SIZE)[:, 0] * 2,
            COLUMN_EACH,
        ),
        Kind(
            "out-axes-none",
            "a map's output with out_axes=None",
            unmapped,
            lambda place: total(place)[0],
            WHOLE_EACH,
        ),
        Kind(
            "two-rows",
            "a map's output with two rows per device",
            two_rows,
            lambda place: place.rows(2, SIZE)[0] * 2,
            shard_map_model=lambda place: place.rows(2, SIZE)[0, 0] * 2,
        ),
        Kind(
            "replicated",
            "an array replicated by device_put",
            put(lambda impl, cluster: impl.sharding(axis=None)),
            as_put,
            dict.fromkeys(IMPLEMENTATIONS, REPLICATED),
        ),
        Kind(
            "single-device",
            "an array on one device",
            put(lambda impl, cluster: cluster.local_devices[1]),
            as_put,
            dict.fromkeys(IMPLEMENTATIONS, ON_ONE_DEVICE),
        ),
        Kind("numpy", "a NumPy array", numpy_rows, as_put),
        Kind("number", "one number, replicated", number, None),
        Kind(
            "keys",
            "typed PRNG keys, one per device",
            keys,
            lambda place: place.all_rows(KEYS, dtype=np.uint32)[0],
        ),
        Kind(
            "raw-keys",
            "raw PRNG keys, one per device",
            raw_keys,
            lambda place: place.all_rows(KEYS, dtype=np.uint32)[0] * np.uint32(2),
        ),
    )
}


# --- The two ways ---------------------------------------------------------------------------------


def by_hand(value: Any) -> Any:
    """`x[0]` of every leaf."""
    return jax.tree.map(lambda x: x[0], value)


def by_flax(value: Any) -> Any:
    """`flax.jax_utils.unreplicate`."""
    from flax.jax_utils import unreplicate

    return unreplicate(value)


def plain(value: Any) -> Any:
    """Typed keys as their numbers, which NumPy can model."""
    is_key = isinstance(value, jax.Array) and jax.dtypes.issubdtype(
        value.dtype, jax.dtypes.prng_key
    )
    return jax.random.key_data(value) if is_key else value


def take_by_hand(impl: Any, cluster: Any, kind: str) -> None:
    """`x[0]` of every leaf."""
    value = KINDS[kind].made(impl, cluster)
    cluster.twice(lambda x: plain(by_hand(x)), value)


def take_by_flax(impl: Any, cluster: Any, kind: str) -> None:
    """`flax.jax_utils.unreplicate`."""
    value = KINDS[kind].made(impl, cluster)
    cluster.twice(lambda x: plain(by_flax(x)), value)


for one in KINDS.values():
    clause(
        f"outputs.unreplicate.index.{one.name}",
        claim=SAME,
        needs=devices(2),
        topologies=one.topologies,
        expect=one.expected(),
        parameters={"kind": one.name},
        title=f"`x[0]` of {one.said}",
    )(take_by_hand)
    clause(
        f"outputs.unreplicate.flax.{one.name}",
        claim=SAME,
        needs=devices(2),
        topologies=one.topologies,
        expect=one.expected(),
        parameters={"kind": one.name},
        title=f"flax's `unreplicate` of {one.said}",
        requires=("flax",),
    )(take_by_flax)


# --- Copies that are not known to be copies -------------------------------------------------------


@clause(
    "outputs.unreplicate.not-tracked",
    claim="migrate-pmap.replication-not-tracked",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            returns(lambda place: np.tile(total(place), (place.topology.devices_per_process, 1))),
            noted("fully replicated", "not known to be", lambda place, seen: seen is False),
        ),
    ),
)
def not_tracked(impl: Any, cluster: Any) -> None:
    """A map's output whose rows are equal is not fully replicated for JAX."""
    for name in ("first call", "second call"):
        output = cluster.step(name, copies, impl, cluster)
        cluster.note("fully replicated", output.is_fully_replicated)


@clause(
    "outputs.unreplicate.fix-local-shard",
    claim="migrate-pmap.fix-unreplicate-local-shard",
    fixes="outputs.unreplicate.index.copies",
    topologies=("1x8", "2x2", "4x2"),
    expect=dict.fromkeys(IMPLEMENTATIONS, every(returns(total), ON_ONE_DEVICE)),
)
def fix_local_shard(impl: Any, cluster: Any) -> None:
    """`x.addressable_shards[0].data.squeeze(0)` is the local copy, on its one device."""
    value = copies(impl, cluster)
    cluster.twice(lambda x: x.addressable_shards[0].data.squeeze(0), value)
