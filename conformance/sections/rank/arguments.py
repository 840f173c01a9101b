"""Arguments of a body: unmapped ones, seen whole; keys; and rows that are not one per device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices, processes
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import FOUR_PROCESSES, ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, not_applicable, raises, returns, sharded
from conformance.sections.rank.bodies import OTHER_FUNCTIONS, mapped, run, sensitive
from conformance.sections.rank.shapes import of_pmap, of_shard_map, sees, watched

# --- unmapped ------------------------------------------------------------------------------------

UNMAPPED = {
    "scalar": (),
    "vector": (4,),
    "matrix": (3, 4),
    # As many rows as the cluster has devices: what would be split if it were mapped.
    "one-row-per-device": (8, 4),
}


def whole(shape: tuple[int, ...]) -> Any:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def unmapped_in_pmap(impl: Any, cluster: Any, shape: list[int]) -> None:
    """A pmap with an unmapped argument, whose body adds up all of it."""
    seen: list[Any] = []

    def body(x: Any, y: Any) -> Any:
        seen.append(list(y.shape))
        return x * y.sum()

    function = impl.map(body, in_axes=(0, None))
    watched(cluster, function, seen, cluster.rows(4), whole(tuple(shape)))


def unmapped_in_shard_map(impl: Any, cluster: Any, shape: list[int]) -> None:
    """A shard_map with an argument whose spec is `P()`, whose body adds up all of it."""
    seen: list[Any] = []

    def body(x: Any, y: Any) -> Any:
        seen.append(list(y.shape))
        return x * y.sum()

    spec = jax.sharding.PartitionSpec
    function = jax.shard_map(
        body, mesh=impl.mesh(), in_specs=(spec("i"), spec()), out_specs=spec("i")
    )
    rows = impl.given(cluster.rows(4))
    adopted = impl.adopt(jax.jit(function), "jit(shard_map)")
    watched(cluster, adopted, seen, rows, whole(tuple(shape)))


def _declare_unmapped() -> None:
    for name, shape in UNMAPPED.items():

        def scaled(place: Place, shape: tuple[int, ...] = shape) -> Any:
            """this process's rows, times the sum of the whole unmapped argument"""
            return place.rows(4) * whole(shape).sum()

        clause(
            f"rank.unmapped.pmap.{name}",
            claim="migrate-pmap.unmapped-argument-pmap",
            topologies=ONE_AND_FOUR,
            expect=of_pmap(sees(*shape), returns(scaled)),
            parameters={"shape": list(shape)},
            title=f"An argument of shape {shape} with `None` in `in_axes` is seen whole",
        )(unmapped_in_pmap)
        clause(
            f"rank.unmapped.shard-map.{name}",
            claim="migrate-pmap.unmapped-argument-shard-map",
            topologies=ONE_AND_FOUR,
            expect=of_shard_map(sees(*shape), returns(scaled)),
            parameters={"shape": list(shape)},
            title=f"An argument of shape {shape} with the spec `P()` is seen whole",
        )(unmapped_in_shard_map)


_declare_unmapped()

# --- random keys ---------------------------------------------------------------------------------


def keys(place: Place) -> Any:
    """One raw key per device."""
    return place.rows(2, dtype=np.uint32)


def ordered(key: Any) -> Any:
    """What a shuffle of four numbers is once sorted, whatever the key, if it is one key."""
    if key.ndim != 1:
        raise ValueError("one key is wanted")
    return np.arange(4, dtype=np.int32)


@clause(
    "rank.random-key.raw",
    claim=OTHER_FUNCTIONS,
    needs=devices(2),
    expect=sensitive(ordered, keys),
)
def raw_key(impl: Any, cluster: Any) -> None:
    """One raw key per device, with which `jax.random.permutation` shuffles, then `jnp.sort`."""
    run(impl, cluster, lambda key: jnp.sort(jax.random.permutation(key, 4)), ordered, keys)


@clause(
    "rank.random-key.typed",
    claim=OTHER_FUNCTIONS,
    needs=devices(2),
    expect=sensitive(ordered, keys),
)
def typed_key(impl: Any, cluster: Any) -> None:
    """The same with a typed key, made in the body with `jax.random.wrap_key_data`."""

    def shuffled(key: Any) -> Any:
        return jnp.sort(jax.random.permutation(jax.random.wrap_key_data(key), 4))

    run(impl, cluster, shuffled, ordered, keys)


# --- rows and devices that do not match ----------------------------------------------------------

NO_ROWS_IN_SHARD_MAP = not_applicable("shard_map splits rows into blocks: a clause of its own")


def as_legacy(expected: Expectation) -> dict[str, Expectation]:
    """What legacy pmap does is what the new one must do."""
    return {LEGACY_PMAP: expected, NEW_PMAP: expected, SHARD_MAP: NO_ROWS_IN_SHARD_MAP}


# What legacy pmap says, in one process and in several. A user told less has to guess.
TOO_MANY = raises(ValueError, r"requires \d+ logical devices, but only \d+")
NOT_ONE_EACH = raises(ValueError, "equal to the number of local devices")


def given_rows(impl: Any, cluster: Any, count: int) -> None:
    """A pmap over a number of rows that is not that of this process's devices."""
    rows = np.arange(1, 1 + count * 3, dtype=np.float32).reshape(count, 3)
    cluster.twice(impl.map(lambda x: x * 2), rows)


for _name, _count in {"one-too-many": 9, "twice-as-many": 16}.items():
    clause(
        f"rank.rows.{_name}",
        claim="pmap-silence.more-rows-than-devices",
        expect=as_legacy(TOO_MANY),
        parameters={"count": _count},
        title=f"A pmap over {_count} rows with 8 devices is refused, and told why",
    )(given_rows)

for _name, _count in {"one-too-many": 3, "twice-as-many": 4, "half-as-many": 1}.items():
    fewer = _name == "half-as-many"
    clause(
        f"rank.rows.several-processes.{_name}",
        claim=f"pmap-silence.{'fewer' if fewer else 'more'}-rows-than-devices",
        topologies=FOUR_PROCESSES,
        expect=as_legacy(NOT_ONE_EACH),
        parameters={"count": _count},
        title=f"In several processes, {_count} rows with 2 local devices are refused",
    )(given_rows)


def half(place: Place) -> Any:
    """the rows given, doubled"""
    return place.rows(3)[: place.topology.devices_per_process // 2] * 2


@clause(
    "rank.rows.half-as-many",
    claim="pmap-silence.fewer-rows-than-devices",
    needs=processes(1, devices_per_process=2),
    expect=as_legacy(returns(half)),
)
def half_as_many(impl: Any, cluster: Any) -> None:
    """A pmap over half as many rows as this process has devices."""
    cluster.twice(impl.map(lambda x: x * 2), cluster.rows(3)[: len(cluster.local_devices) // 2])


@clause(
    "rank.rows.half-as-many-placed",
    claim="pmap-silence.fewer-rows-than-devices",
    needs=processes(1, devices_per_process=2),
    expect=as_legacy(
        sharded(
            "lies on the first half of the devices",
            lambda place, sharding: (
                sharding["devices"] == list(range(place.topology.devices_per_process // 2))
            ),
        )
    ),
)
def half_as_many_placed(impl: Any, cluster: Any) -> None:
    """The output of a pmap over half as many rows as devices lies on the first half of them."""
    half_as_many(impl, cluster)


@clause(
    "rank.rows.half-as-many-summed",
    claim="pmap-silence.fewer-rows-than-devices",
    needs=processes(1, devices_per_process=2),
    expect=as_legacy(
        returns(lambda p: np.broadcast_to(half(p).sum(0), half(p).shape), text="the sum of all")
    ),
)
def half_as_many_summed(impl: Any, cluster: Any) -> None:
    """A `psum` in a pmap over half as many rows as devices is over the rows given."""
    rows = cluster.rows(3)[: len(cluster.local_devices) // 2]
    cluster.twice(impl.map(lambda x: jax.lax.psum(x * 2, "i")), rows)


@clause(
    "rank.rows.blocks",
    claim="sharded-computation.several-rows-per-device",
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(
        sees(2, 3), returns(lambda p: p.rows(2, 3).reshape(-1, 3) * 2, text="all rows, doubled")
    ),
)
def blocks(impl: Any, cluster: Any) -> None:
    """A shard_map over twice as many rows as devices sees blocks of two rows."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    rows = impl.given(cluster.rows(2, 3).reshape(-1, 3))
    watched(cluster, mapped(impl, body), seen, rows)


@clause(
    "rank.rows.blocks-as-written",
    claim="sharded-computation.several-rows-per-device",
    expect=of_shard_map(
        sees(4), returns(lambda place: np.arange(32, dtype=np.int32) * 2, text="0 to 62 by twos")
    ),
)
def blocks_as_written(impl: Any, cluster: Any) -> None:
    """A shard_map over 32 numbers on 8 devices sees 4 of them."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    watched(cluster, mapped(impl, body), seen, jnp.arange(32))


UNEVEN = {"one-too-many": 9, "half-as-many": 4, "one-row": 1}


def uneven(impl: Any, cluster: Any, count: int) -> None:
    """A shard_map over rows that cannot be split into equal blocks."""
    rows = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    cluster.twice(mapped(impl, lambda x: x * 2), rows)


for _name, _count in UNEVEN.items():
    clause(
        f"rank.rows.uneven.{_name}",
        claim="sharded-computation.several-rows-per-device",
        topologies=ONE_AND_FOUR,
        expect=of_shard_map(raises(ValueError, "not evenly divisible")),
        parameters={"count": _count},
        title=f"A shard_map over {_count} rows on 8 devices is refused: no equal blocks",
    )(uneven)
