"""The first of several equal copies: by indexing, by flax's `unreplicate`, and from a local shard.

A table of objects that users pass to `x[0]`, to flax's `unreplicate` and to the document's fix,
each compared with NumPy's `x[0]`, because the document calls the three equal. Where it documents
the result's sharding, that is tested too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.outputs import ON_ONE_DEVICE, WIDTH
from conformance.sections.outputs.handed_over import copies
from conformance.sections.outputs.kinds import KINDS, Kind
from conformance.spec.arrays import returns_array
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import every, noted, steps
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, ONE_AND_TWO, Place
from conformance.worker.bodies import summed
from conformance.worker.kept import keep_maps
from conformance.worker.protocols import Cluster, Implementation

UNREPLICATE = "migrate-pmap.unreplicate-is-index-zero"
LOCAL_SHARD = "migrate-pmap.fix-unreplicate-local-shard"


# --- The three ways -------------------------------------------------------------------------------


def by_hand(value: Any) -> Any:
    """`x[0]` of every leaf."""
    return jax.tree.map(lambda x: x[0], value)


def by_flax(value: Any) -> Any:
    """`flax.jax_utils.unreplicate`."""
    from flax.jax_utils import unreplicate

    return unreplicate(value)


def off_the_shard(value: Any) -> Any:
    """The document's remedy, on every leaf."""
    return jax.tree.map(lambda x: x.addressable_shards[0].data.squeeze(0), value)


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

SHARD: Mapping[str, Way] = table(
    Way("shard", "`x.addressable_shards[0].data.squeeze(0)`", off_the_shard),
)


@family(
    "outputs.unreplicate.{way}.{kind}",
    way=WAYS,
    kind=KINDS,
    claim=UNREPLICATE,
    title="{way.text} of {kind.text}",
    fact=lambda way, kind: f"outputs.unreplicate.{way.key}.{kind.fact}",
    needs=devices(2),
    expect=lambda kind: kind.expected(),
)
@family(
    "outputs.unreplicate.{way}.{kind}",
    way=SHARD,
    kind=KINDS,
    claim=LOCAL_SHARD,
    fixes=lambda kind: f"outputs.unreplicate.index.{kind.key}",
    title="{way.text} of {kind.text}",
    fact=lambda way, kind: f"outputs.unreplicate.{way.key}.{kind.fact}",
    needs=devices(2),
    expect=lambda kind: kind.on_one_device(),
)
def take_first(impl: Implementation, cluster: Cluster, way: Way, kind: Kind) -> None:
    """The first of what is handed over, in one of the three ways."""
    value = kind.made(impl, cluster)
    cluster.twice(lambda x: plain(way.program(x)), value)


# --- Copies that are not known to be copies -------------------------------------------------------


@described("one copy of the sum of all rows for each of this process's devices")
def equal_copies(place: Place) -> Any:
    return np.tile(summed(WIDTH)(place), (place.topology.devices_per_process, 1))


@clause(
    "outputs.unreplicate.not-tracked",
    claim="migrate-pmap.replication-not-tracked",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=everywhere(
        every(
            returns_array(equal_copies),
            noted("fully replicated", "not known to be", lambda place, seen: seen is False),
        ),
    ),
)
def not_tracked(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function's output whose rows are equal is not `is_fully_replicated`."""
    call = keep_maps(impl, lambda kept: copies(kept, cluster))
    for name in ("first call", "second call"):
        output = cluster.step(name, call)
        if output is not None:
            cluster.note("fully replicated", output.is_fully_replicated)


UNMOVED = noted(
    "programs",
    "one program, without communication",
    lambda place, seen: len(seen) == 1 and not any(one["collectives"] for one in seen),
    show=lambda seen: f"collectives of {len(seen)} programs: {[p['collectives'] for p in seen]}",
    compiled=True,
)


@clause(
    "outputs.unreplicate.fix-local-shard",
    claim=LOCAL_SHARD,
    fixes="outputs.unreplicate.index.copies",
    topologies=ONE_AND_SEVERAL,
    needs=devices(2),
    expect=everywhere(
        every(
            returns_array(summed(WIDTH)),
            ON_ONE_DEVICE,
            steps(with_empty_caches=UNMOVED),
        )
    ),
)
def fix_local_shard(impl: Implementation, cluster: Cluster) -> None:
    """`x.addressable_shards[0].data.squeeze(0)` is the local copy, without communication."""
    value = copies(impl, cluster)
    cluster.twice(off_the_shard, value)
    cluster.compiled("with empty caches", off_the_shard, value)
