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
from conformance.catalogue.family import family, table
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_SEVERAL, ONE_AND_TWO, ONE_PROCESS, Place
from conformance.judging.columns import Columns, everywhere
from conformance.judging.expectation import (
    Expectation,
    Model,
    every,
    noted,
    raises,
    returns,
    sharded,
)
from conformance.probing.bodies import double, psum, summed
from conformance.sections.outputs import (
    ON_ONE_DEVICE,
    WIDTH,
    block_map,
    doubled_rows,
    everything,
    ours,
)

KEY_NUMBERS = 2  # in a PRNG key's data


# --- How the first one lies -----------------------------------------------------------------------


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


def copies(impl: Any, cluster: Any) -> Any:
    """A map's output whose rows are all equal: a sum over all devices."""
    return impl.map(psum())(impl.given(cluster.rows(WIDTH)))


def two_leaves(impl: Any, cluster: Any) -> Any:
    """A map's output with two leaves, as a training state has."""
    function = impl.map(lambda x: {"a": x * 2, "b": (x.sum(),)})
    return function(impl.given(cluster.rows(WIDTH)))


def of_half(impl: Any, cluster: Any) -> Any:
    """The output of a map over the second half of the devices."""
    half = len(cluster.local_devices) // 2
    function = impl.map(double(), devices=cluster.local_devices[half:])
    return function(cluster.rows(WIDTH)[half:])


def of_one_device(impl: Any, cluster: Any) -> Any:
    """The output of a map over one device."""
    function = impl.map(double(), devices=cluster.local_devices[1:2])
    return function(cluster.rows(WIDTH)[1:2])


def two_rows(impl: Any, cluster: Any) -> Any:
    """A map's output with two rows on each device (for pmap, a stack of pairs of rows)."""
    data = cluster.rows(2, WIDTH)
    if impl.is_pmap:
        return impl.map(double())(data)
    return block_map(impl, double())(data.reshape(-1, WIDTH))


def placed(impl: Any, cluster: Any, where: Any) -> Any:
    """Rows that no map returned, put somewhere; a map ran before, as proof of where we are."""
    doubled_rows(impl, cluster)
    return jax.device_put(cluster.rows(WIDTH), where)


def numpy_rows(impl: Any, cluster: Any) -> Any:
    """A NumPy array, after a map as well."""
    doubled_rows(impl, cluster)
    return cluster.rows(WIDTH)


def first_placed(place: Place) -> Any:
    """the first of the rows that were put"""
    return place.rows(WIDTH)[0]


def first_here(place: Place) -> Any:
    """the first row of this process's rows"""
    return ours(place)[0]


def first_of_all(place: Place) -> Any:
    """the first row of all rows"""
    return everything(place)[0]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is handed over, NumPy's `x[0]` of it, and where the document says that this lies.

    `model` is None where there is no `x[0]`. Kinds of one `fact` vary one finding.
    """

    key: str
    text: str
    made: Callable[[Any, Any], Any]
    model: Model | None
    fact: str
    lies: Mapping[str, Expectation] | None = None
    shard_map_model: Model | None = None
    topologies: tuple[str, ...] = ONE_PROCESS

    def expected(self) -> Columns:
        """The model's values under each implementation; IndexError where there is no `x[0]`."""
        if self.model is None:
            return everywhere(
                raises(IndexError, "[Tt]oo many ind", otherwise=lambda p: p.all_rows().sum())
            )
        found: Columns = dict.fromkeys(IMPLEMENTATIONS, returns(self.model))
        found[SHARD_MAP] = returns(self.shard_map_model or self.model)
        for name, where in (self.lies or {}).items():
            found[name] = every(found[name], where)
        return found


KINDS: Mapping[str, Kind] = table(
    Kind(
        "rows",
        "a map's output",
        doubled_rows,
        first_here,
        "stack",
        lies=ONE_ROW_EACH,
        shard_map_model=first_of_all,
        topologies=ONE_AND_TWO,
    ),
    Kind(
        "copies",
        "a map's output whose rows are equal",
        copies,
        summed(WIDTH),
        "stack",
        lies=ONE_ROW_EACH,
        topologies=ONE_AND_TWO,
    ),
    Kind(
        "tree",
        "a map's output of two leaves",
        two_leaves,
        lambda place: [ours(place)[0], place.rows(WIDTH)[0].sum()],
        "stack",
        lies=ONE_ROW_EACH,
    ),
    Kind(
        "subset",
        "the output of a map over half of the devices",
        of_half,
        lambda place: ours(place)[place.topology.devices_per_process // 2],
        "stack",
    ),
    Kind(
        "one-device",
        "the output of a map over one device",
        of_one_device,
        lambda place: ours(place)[1],
        "one-device",
    ),
    Kind(
        "out-axes-1",
        "a map's output with out_axes=1",
        lambda impl, cluster: impl.map(double(), out_axes=1)(impl.given(cluster.rows(WIDTH))),
        lambda place: ours(place)[:, 0],
        "out-axes-1",
        lies=COLUMN_EACH,
    ),
    Kind(
        "out-axes-none",
        "a map's output with out_axes=None",
        lambda impl, cluster: impl.map(psum(), out_axes=None)(impl.given(cluster.rows(WIDTH))),
        lambda place: summed(WIDTH)(place)[0],
        "replicated",
        lies=WHOLE_EACH,
    ),
    Kind(
        "two-rows",
        "a map's output with two rows per device",
        two_rows,
        lambda place: place.rows(2, WIDTH)[0] * 2,
        "two-rows",
        shard_map_model=lambda place: place.rows(2, WIDTH)[0, 0] * 2,
    ),
    Kind(
        "replicated",
        "an array replicated by device_put",
        lambda impl, cluster: placed(impl, cluster, impl.sharding(axis=None)),
        first_placed,
        "replicated",
        lies=everywhere(REPLICATED),
    ),
    Kind(
        "single-device",
        "an array on one device",
        lambda impl, cluster: placed(impl, cluster, cluster.local_devices[1]),
        first_placed,
        "never-mapped",
        lies=everywhere(ON_ONE_DEVICE),
    ),
    Kind("numpy", "a NumPy array", numpy_rows, first_placed, "never-mapped"),
    Kind(
        "number",  # a loss that the map has averaged
        "one number, replicated",
        lambda impl, cluster: impl.map(psum(), out_axes=None)(impl.given(cluster.rows())),
        None,
        "number",
    ),
    Kind(
        "keys",
        "typed PRNG keys, one per device",
        lambda impl, cluster: impl.map(lambda x: jax.random.wrap_key_data(x, impl="threefry2x32"))(
            cluster.all_rows(KEY_NUMBERS, dtype=np.uint32)
        ),
        lambda place: place.all_rows(KEY_NUMBERS, dtype=np.uint32)[0],
        "keys",
    ),
    Kind(
        "raw-keys",
        "raw PRNG keys, one per device",
        lambda impl, cluster: impl.map(lambda x: x + x)(
            cluster.all_rows(KEY_NUMBERS, dtype=np.uint32)
        ),
        lambda place: place.all_rows(KEY_NUMBERS, dtype=np.uint32)[0] * np.uint32(2),
        "keys",
    ),
)


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


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the first one, and the packages that it needs."""

    key: str
    text: str
    program: Callable[[Any], Any]
    requires: tuple[str, ...] = ()


WAYS: Mapping[str, Way] = table(
    Way("index", "`x[0]`", by_hand),
    Way("flax", "flax's `unreplicate`", by_flax, requires=("flax",)),
)


@family(
    "outputs.unreplicate.{way}.{kind}",
    way=WAYS,
    kind=KINDS,
    claim="migrate-pmap.unreplicate-is-index-zero",
    title="{way.text} of {kind.text}",
    fact=lambda way, kind: f"outputs.unreplicate.{way.key}.{kind.fact}",
    needs=devices(2),
    topologies=lambda kind: kind.topologies,
    requires=lambda way: way.requires,
    expect=lambda kind: kind.expected(),
)
def take_first(impl: Any, cluster: Any, way: Way, kind: Kind) -> None:
    """The first of what is handed over, in one of the two ways."""
    value = kind.made(impl, cluster)
    cluster.twice(lambda x: plain(way.program(x)), value)


# --- Copies that are not known to be copies -------------------------------------------------------


@clause(
    "outputs.unreplicate.not-tracked",
    claim="migrate-pmap.replication-not-tracked",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=everywhere(
        every(
            returns(
                lambda place: np.tile(summed(WIDTH)(place), (place.topology.devices_per_process, 1))
            ),
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
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(every(returns(summed(WIDTH)), ON_ONE_DEVICE)),
)
def fix_local_shard(impl: Any, cluster: Any) -> None:
    """`x.addressable_shards[0].data.squeeze(0)` is the local copy, on its one device."""
    value = copies(impl, cluster)
    cluster.twice(lambda x: x.addressable_shards[0].data.squeeze(0), value)
