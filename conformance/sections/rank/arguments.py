"""Unmapped arguments, and arguments without one row per device."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank import (
    ABOUT_PMAP,
    ABOUT_SHARD_MAP,
    EACH_ROW,
    P,
    map_of_blocks,
    sees,
    watch,
)
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import of_pmaps, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, raises, returns, sharded, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, ONE_AND_FOUR, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

# --- unmapped ------------------------------------------------------------------------------------

UNMAPPED: dict[str, tuple[int, ...]] = {
    "scalar": (),
    "vector": (4,),
    "matrix": (3, 4),
    # As many rows as the cluster has devices: what would be split if it were mapped.
    "one-row-per-device": (8, 4),
}


def numbers(*shape: int) -> Any:
    """An array of 1, 2, 3, ..."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def sees_whole(shape: tuple[int, ...]) -> Expectation:
    """The body sees all of an unmapped argument of this shape, which it adds up."""

    @described("this process's rows, times the sum of the whole unmapped argument")
    def scaled(place: Place) -> Any:
        return place.rows(4) * numbers(*shape).sum()

    return twice(every(sees(*shape), returns(scaled)))


@family(
    "rank.unmapped.pmap.{shape}",
    shape=UNMAPPED,
    claim="migrate-pmap.unmapped-argument-pmap",
    title=lambda shape: (
        f"An argument of shape {shape} with `None` in `in_axes` is the full array in the body"
    ),
    fact="rank.unmapped.pmap",
    topologies=ONE_AND_FOUR,
    expect=lambda shape: of_pmaps(sees_whole(shape), ABOUT_PMAP),
)
def unmapped_in_pmap(impl: Implementation, cluster: Cluster, shape: tuple[int, ...]) -> None:
    """A pmap with an unmapped argument, whose body adds up all of it."""
    mapping = partial(impl.map, in_axes=(0, None))
    watch(cluster, mapping, lambda x, y: x * y.sum(), cluster.rows(4), numbers(*shape))


@family(
    "rank.unmapped.shard-map.{shape}",
    shape=UNMAPPED,
    claim="migrate-pmap.unmapped-argument-shard-map",
    title=lambda shape: (
        f"An argument of shape {shape} with the spec `P()` is the full array in the body"
    ),
    fact="rank.unmapped.shard-map",
    topologies=ONE_AND_FOUR,
    expect=lambda shape: of_shard_map(sees_whole(shape), ABOUT_SHARD_MAP),
)
def unmapped_in_shard_map(impl: Implementation, cluster: Cluster, shape: tuple[int, ...]) -> None:
    """A shard_map with an argument whose spec is `P()`, whose body adds up all of it."""
    mapping = partial(map_of_blocks, impl, in_specs=(EACH_ROW, P()))
    rows = impl.given(cluster.rows(4))
    watch(cluster, mapping, lambda x, y: x * y.sum(), rows, numbers(*shape))


# --- rows and devices that do not match: both pmaps must do what legacy does ----------------------

IN_BLOCKS = "shard_map splits rows into blocks: a clause of its own"

# Legacy pmap's messages, in one process and in several. With less, a user has to guess.


def too_many(count: int) -> Expectation:
    """So many rows, and how many devices there are."""
    devices = rf"requires {count} logical devices, but only 8 XLA devices are available"
    return twice(raises(ValueError, devices, phase="compile"))


def not_one_each(count: int) -> Expectation:
    """Expect the error that a process needs one row per device, with the number that it passed."""
    wanted = "must have leading axis size equal to the number of local devices"
    got = f"Got axis_size={count}, num_local_devices=2"
    return twice(raises(ValueError, f"{wanted} .*{got}$", phase="lower"))


MORE = "pmap-silence.more-rows-than-devices"
FEWER = "pmap-silence.fewer-rows-than-devices"
OTHERWISE_IN_SEVERAL = "rank.rows.several-processes.* tests several processes"

DEFAULTS = Defaults(
    claim=FEWER,
    needs=processes(1, devices_per_process=2),
    left_out=OTHERWISE_IN_SEVERAL,
    fact="rank.rows.half-as-many",
)


OF_EIGHT_DEVICES = {"one-too-many": 9, "twice-as-many": 16}
OF_TWO_LOCAL_DEVICES = {"one-too-many": 3, "twice-as-many": 4, "half-as-many": 1}


def double_rows(impl: Implementation, cluster: Cluster, count: int) -> None:
    """Two calls of a pmap over so many rows."""
    cluster.twice(impl.map(double()), numbers(count, 3))


@family(
    "rank.rows.{count}",
    count=OF_EIGHT_DEVICES,
    claim=MORE,
    title=lambda count: (
        f"A pmap over {count} rows with 8 devices is refused by an error that says why"
    ),
    fact="rank.rows.too-many",
    left_out=OTHERWISE_IN_SEVERAL,
    needs=devices(8),
    expect=lambda count: of_pmaps(too_many(count), IN_BLOCKS),
)
def too_many_rows(impl: Implementation, cluster: Cluster, count: int) -> None:
    """A pmap over more rows than there are devices."""
    double_rows(impl, cluster, count)


@family(
    "rank.rows.several-processes.{count}",
    count=OF_TWO_LOCAL_DEVICES,
    claim=lambda count: FEWER if count == OF_TWO_LOCAL_DEVICES["half-as-many"] else MORE,
    title=lambda count: (
        f"In several processes, a pmap over {count} row{'s' * (count > 1)} with 2 local devices is "
        "refused by an error that says why"
    ),
    fact="rank.rows.several-processes",
    needs=processes(2, devices_per_process=2),
    topologies=FOUR_PROCESSES,
    expect=lambda count: of_pmaps(not_one_each(count), IN_BLOCKS),
)
def other_rows_in_several_processes(impl: Implementation, cluster: Cluster, count: int) -> None:
    """A pmap over a number of rows that is not that of this process's devices."""
    double_rows(impl, cluster, count)


def half_of_rows(place: Place) -> Any:
    """Rows for half of this process's devices."""
    return place.rows(3)[: place.topology.devices_per_process // 2]


@described("the rows given, doubled")
def half_doubled(place: Place) -> Any:
    return half_of_rows(place) * 2


@described("the sum of all")
def half_summed(place: Place) -> Any:
    rows = half_doubled(place)
    return np.broadcast_to(rows.sum(0), rows.shape)


@DEFAULTS.clause("rank.rows.half-as-many", expect=of_pmaps(twice(returns(half_doubled)), IN_BLOCKS))
@DEFAULTS.clause(
    "rank.rows.half-as-many-placed",
    title="The output of a pmap over half as many rows as devices is on the first half of them.",
    expect=of_pmaps(
        twice(
            every(
                returns(half_doubled),
                sharded(
                    "lies on the first half of the devices",
                    lambda place, sharding: (
                        sharding["devices"] == list(range(place.topology.devices_per_process // 2))
                    ),
                ),
            )
        ),
        IN_BLOCKS,
    ),
)
def half_as_many(impl: Implementation, cluster: Cluster) -> None:
    """A pmap over half as many rows as this process has devices."""
    cluster.twice(impl.map(double()), half_of_rows(cluster))


@DEFAULTS.clause(
    "rank.rows.half-as-many-summed", expect=of_pmaps(twice(returns(half_summed)), IN_BLOCKS)
)
def half_as_many_summed(impl: Implementation, cluster: Cluster) -> None:
    """A `psum` in a pmap over half as many rows as devices sums the given rows only."""
    cluster.twice(impl.map(lambda x: jax.lax.psum(x * 2, "i")), half_of_rows(cluster))


# --- blocks of rows -------------------------------------------------------------------------------


@described("all rows, doubled")
def all_doubled(place: Place) -> Any:
    return place.rows(2, 3).reshape(-1, 3) * 2


@clause(
    "rank.rows.blocks",
    claim="sharded-computation.several-rows-per-device",
    fact="rank.rows.blocks",
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(twice(every(sees(2, 3), returns(all_doubled))), ABOUT_SHARD_MAP),
)
def blocks(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over twice as many rows as devices sees blocks of two rows."""
    rows = impl.given(cluster.rows(2, 3).reshape(-1, 3))
    watch(cluster, partial(map_of_blocks, impl), double(), rows)


@described("this process's part of 0 to 62 by twos")
def numbers_doubled(place: Place) -> Any:
    return place.mine(np.arange(32, dtype=np.int32).reshape(8, 4) * 2).ravel()


@clause(
    "rank.rows.blocks-as-written",
    claim="sharded-computation.several-rows-per-device",
    fact="rank.rows.blocks",
    topologies=ONE_AND_FOUR,
    needs=devices(2),
    expect=of_shard_map(twice(every(sees(4), returns(numbers_doubled))), ABOUT_SHARD_MAP),
)
def blocks_as_written(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over 32 numbers on 8 devices sees 4 of them."""
    watch(cluster, partial(map_of_blocks, impl), double(), jnp.arange(32))


def uneven_rows(count: int) -> Expectation:
    """shard_map names the argument, its rows and the mesh's axis."""
    axis = r"maps array axis 0 \(of size {count}\) to mesh axis 'i' \(of size 8\)"
    pattern = (
        "argument arrays with axis sizes that are not evenly divisible by the corresponding mesh "
        rf"axis sizes:.*float32\[{count},3\].*{axis.format(count=count)}"
    )
    return raises(ValueError, pattern, phase="trace")


UNEVEN = {"one-too-many": 9, "half-as-many": 4, "one-row": 1}


@family(
    "rank.rows.uneven.{count}",
    count=UNEVEN,
    claim="sharded-computation.several-rows-per-device",
    title=lambda count: f"A shard_map over {count} rows on 8 devices is refused: no equal blocks",
    fact="rank.rows.uneven",
    topologies=ONE_AND_FOUR,
    needs=devices(8),
    expect=lambda count: of_shard_map(twice(uneven_rows(count)), ABOUT_SHARD_MAP),
)
def uneven(impl: Implementation, cluster: Cluster, count: int) -> None:
    """A shard_map over rows that cannot be split into equal blocks."""
    rows = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    cluster.twice(map_of_blocks(impl, double()), rows)
