"""The replacement of `device_put_sharded`: what it returns for every kind of shard.

The table says what the shards are, in NumPy and Python alone, so that the model is made from the
very same data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.drop_in import (
    LEADING,
    NP,
    OWN_DEVICES,
    RAW_KEYS,
    SHARDED,
    SILENT,
    STACKINGS,
    TYPED_KEYS,
    ZERO_SIZE,
    Pair,
    Stacking,
    Tree,
    all_of,
    cast,
    first_alone,
    give_to_map,
    narrow,
    replace,
    reproduced,
    reversed_order,
    second_half,
    taken,
    weak_leaves,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap-later.device-put-sharded-replacement"
OF_PYTREES = "migrate-pmap-later.device-put-sharded-pytrees"

# The facts that the kinds of shards vary.
DTYPES = "drop_in.sharded.dtypes"
PYTHON = "drop_in.sharded.python-numbers"
ARRAYS = "drop_in.sharded.jax-arrays"
COMMITTED = "drop_in.sharded.committed"
ON_ANOTHER = "drop_in.sharded.committed-elsewhere"
TUPLE = "drop_in.sharded.tuple-of-shards"
PYTREES = "drop_in.sharded.pytrees"
ON_DEVICES = "drop_in.sharded.devices"

WIDTH = 3


def _as_given(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return shards


def _as_arrays(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return jax.tree.map(jax.numpy.asarray, shards)


def _each_on_its_device(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return [jax.device_put(s, device) for s, device in zip(shards, devices, strict=True)]


def _all_on_the_last(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return [jax.device_put(shard, devices[-1]) for shard in shards]


def _as_keys(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return [jax.random.wrap_key_data(jax.numpy.asarray(shard)) for shard in shards]


def _as_tuple(shards: list[Tree], devices: list[jax.Device]) -> Any:
    return tuple(shards)


def _interleaved(devices: list[Any]) -> list[Any]:
    return devices[::2] + devices[1::2]


@dataclass(frozen=True, slots=True)
class Shards:
    """A kind of shards: what each row of data becomes, how it is passed, over which devices.

    `by_np` says that np.stack is tried too.
    """

    key: str
    title: str
    shard: Callable[[Any], Tree]
    fact: str
    claim: str = CLAIM
    given: Callable[[list[Tree], list[Any]], Any] = _as_given
    pick: Callable[[list[Any]], list[Any]] = all_of
    by_np: bool = False
    topologies: tuple[str, ...] = ONE_PROCESS
    width: int = WIDTH

    def build(self, place: Place) -> list[Tree]:
        """One shard for each of the devices that are picked of this process's."""
        rows = place.rows(self.width)
        count = len(self.pick(list(rows)))
        return [self.shard(row) for row in rows[:count]]

    @described("the shards, leaf by leaf along a new leading axis")
    def stacked(self, place: Place) -> Tree:
        return jax.tree.map(lambda *leaves: narrow(np.stack(leaves)), *self.build(place))

    @property
    def left_out(self) -> str:
        """Return why it is not tried with several processes."""
        return OWN_DEVICES if self.topologies == ONE_PROCESS else ""

    def as_original(self) -> Expectation:
        """The stack, weakly typed where the shards are Python numbers."""
        return reproduced(
            "the shards along a new leading axis",
            self.stacked,
            lambda place: weak_leaves(self.build(place)[0]),
        )


KINDS: Mapping[str, Shards] = table(
    Shards(
        "float32", "float32 shards", cast("float32"), DTYPES, topologies=ONE_AND_SEVERAL, by_np=True
    ),
    Shards("int32", "int32 shards", cast("int32"), DTYPES, by_np=True),
    Shards("uint8", "uint8 shards", cast("uint8"), DTYPES),
    Shards("bool", "Shards of booleans", lambda row: row % 2 == 0, DTYPES, by_np=True),
    Shards("float16", "float16 shards", cast("float16"), DTYPES),
    Shards("bfloat16", "bfloat16 shards", cast("bfloat16"), DTYPES, by_np=True),
    Shards(
        "complex64",
        "complex64 shards",
        lambda row: (row * (1 + 2j)).astype(np.complex64),
        DTYPES,
    ),
    Shards("float64", "float64 shards become float32", cast("float64"), DTYPES, by_np=True),
    Shards("int64", "int64 shards become int32", cast("int64"), DTYPES),
    Shards("python-int", "Shards that are Python ints", lambda row: int(row[0]), PYTHON),
    Shards("python-float", "Shards that are Python floats", lambda row: float(row[0]), PYTHON),
    Shards("python-bool", "Shards that are Python bools", lambda row: bool(row[0] % 2), PYTHON),
    Shards("python-complex", "Complex Python numbers", lambda row: complex(row[0], 1), PYTHON),
    Shards(
        "numpy-scalar",
        "Shards that are NumPy scalars",
        lambda row: np.float32(row[0]),
        DTYPES,
        by_np=True,
    ),
    Shards(
        "zero-size",
        "Shards without elements",
        lambda row: np.zeros((0, 3), np.float32),
        ZERO_SIZE,
        by_np=True,
    ),
    Shards(
        "two-dimensional",
        "Shards of two dimensions",
        lambda row: np.stack([row, row + 1]),
        DTYPES,
    ),
    Shards(
        "jax-arrays",
        "Shards that are uncommitted JAX arrays",
        cast("float32"),
        ARRAYS,
        given=_as_arrays,
        topologies=ONE_AND_SEVERAL,
    ),
    Shards(
        "weak-arrays",
        "Shards that are weakly typed JAX arrays",
        lambda row: float(row[0]),
        ARRAYS,
        given=_as_arrays,
    ),
    Shards(
        "committed",
        "Shards that are committed, each to its own device",
        cast("float32"),
        COMMITTED,
        given=_each_on_its_device,
        topologies=ONE_AND_SEVERAL,
        by_np=True,
    ),
    Shards(
        "committed-elsewhere",
        "Shards that are all committed to one device",
        cast("float32"),
        ON_ANOTHER,
        given=_all_on_the_last,
    ),
    Shards(
        "tuple-of-shards",
        "A tuple of shards",
        cast("float32"),
        TUPLE,
        given=_as_tuple,
    ),
    Shards(
        "dict",
        "Shards that are dicts",
        lambda row: {"b": row, "a": row[0]},
        PYTREES,
        OF_PYTREES,
        by_np=True,
    ),
    Shards("list", "Shards that are lists", lambda row: [row, row + 1], PYTREES, OF_PYTREES),
    Shards("tuple", "Shards that are tuples", lambda row: (row, row + 1), PYTREES, OF_PYTREES),
    Shards(
        "named-tuple",
        "Shards that are namedtuples",
        lambda row: Pair(row, row * 3),
        PYTREES,
        OF_PYTREES,
    ),
    Shards(
        "nested",
        "Shards that are nested pytrees of several dtypes",
        lambda row: {"a": (row, [row.astype(np.int32)]), "b": Pair(row > 2, 1.5)},
        PYTREES,
        OF_PYTREES,
        topologies=ONE_AND_SEVERAL,
    ),
    Shards(
        "none-leaves",
        "Shards with None in place of a leaf",
        lambda row: {"a": row, "b": None, "c": (None, row)},
        PYTREES,
        OF_PYTREES,
        by_np=True,
    ),
    Shards(
        "raw-keys",
        "Shards that are raw PRNG keys",
        cast("uint32"),
        RAW_KEYS,
        SILENT,
        given=_as_arrays,
        topologies=ONE_AND_SEVERAL,
        width=2,
    ),
    Shards(
        "typed-keys",
        "Shards that are typed PRNG keys",
        cast("uint32"),
        TYPED_KEYS,
        SILENT,
        given=_as_keys,
        topologies=ONE_AND_SEVERAL,
        width=2,
    ),
    Shards(
        "arrays-of-typed-keys",
        "Shards that are arrays of typed PRNG keys",
        lambda row: np.stack([row, row + 1, row + 2]).astype(np.uint32),
        TYPED_KEYS,
        SILENT,
        given=_as_keys,
        width=2,
    ),
    Shards(
        "devices-reversed",
        "Devices in reverse order",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=reversed_order,
        topologies=ONE_AND_FOUR,
    ),
    Shards(
        "devices-subset",
        "Half of the devices",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=second_half,
        topologies=ONE_AND_FOUR,
    ),
    Shards(
        "devices-interleaved",
        "Interleaved",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=_interleaved,
    ),
    Shards(
        "one-device",
        "One shard on one device",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=first_alone,
    ),
    Shards(
        "committed-reversed",
        "Committed shards on devices in reverse order",
        cast("float32"),
        COMMITTED,
        given=_each_on_its_device,
        pick=reversed_order,
        by_np=True,
    ),
)


@family(
    "drop_in.sharded.{shards}{stacking}",
    shards=KINDS,
    stacking=STACKINGS,
    only=lambda shards, stacking: shards.by_np or stacking is not NP,
    claim="{shards.claim}",
    title="device_put_sharded, replaced with {stacking.name}.stack: {shards.title}.",
    needs=devices(2),
    expect=lambda shards: of_jax(shards.as_original()),
)
def sharded_as_original(
    impl: Implementation, cluster: Cluster, shards: Shards, stacking: Stacking
) -> None:
    """The replacement, and the original where there is one."""
    chosen = shards.pick(cluster.local_devices)
    argument = shards.given(shards.build(cluster), chosen)
    replace(impl, cluster, SHARDED, argument, chosen, stacking)


# The mapped arguments: one row of each kind that a mapped function might refuse.
MAPPED: Mapping[str, Shards] = {
    key: KINDS[key]
    for key in (
        "float32",
        "bool",
        "python-float",
        "zero-size",
        "nested",
        "typed-keys",
        "arrays-of-typed-keys",
        "devices-reversed",
        "devices-subset",
    )
}


@family(
    "drop_in.mapped.sharded.{shards}",
    shards=MAPPED,
    claim="{shards.claim}",
    title=(
        "A mapped function accepts the replacement's result of device_put_sharded: {shards.title}."
    ),
    needs=devices(2),
    expect=lambda shards: everywhere(
        taken(shards.stacked, lambda place: weak_leaves(shards.build(place)[0]))
    ),
)
def sharded_into_map(impl: Implementation, cluster: Cluster, shards: Shards) -> None:
    """Call the replacement, then a mapped function on its result."""
    chosen = shards.pick(cluster.local_devices)
    argument = shards.given(shards.build(cluster), chosen)
    give_to_map(impl, cluster, SHARDED, argument, chosen, all_devices=shards.pick is all_of)
