"""The replacement of `device_put_sharded`: what it returns for every kind of shard.

One probe for all of them. The table says what the shards are, in NumPy and Python alone, so that
the model is made from the very same data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import returns
from conformance.sections.drop_in import (
    BOTH,
    JNP,
    LEADING,
    LOCAL,
    SHARDED,
    SILENT,
    Pair,
    Tree,
    all_of,
    cast,
    doubled,
    first_alone,
    is_weak,
    leaves_of,
    mapped_over,
    narrow,
    or_rows,
    replace,
    reproduced,
    reversed_order,
    second_half,
)

CLAIM = "migrate-pmap-later.device-put-sharded-replacement"
PYTREES = "migrate-pmap-later.device-put-sharded-pytrees"

WIDTH = 3


def _as_given(shards: list[Tree], devices: list[Any]) -> Any:
    return shards


def _as_arrays(shards: list[Tree], devices: list[Any]) -> Any:
    return jax.tree.map(jax.numpy.asarray, shards)


def _each_on_its_device(shards: list[Tree], devices: list[Any]) -> Any:
    return [jax.device_put(s, device) for s, device in zip(shards, devices, strict=True)]


def _all_on_the_last(shards: list[Tree], devices: list[Any]) -> Any:
    return [jax.device_put(shard, devices[-1]) for shard in shards]


def _as_keys(shards: list[Tree], devices: list[Any]) -> Any:
    return [jax.random.wrap_key_data(jax.numpy.asarray(shard)) for shard in shards]


def _as_tuple(shards: list[Tree], devices: list[Any]) -> Any:
    return tuple(shards)


def _interleaved(devices: list[Any]) -> list[Any]:
    return devices[::2] + devices[1::2]


@dataclass(frozen=True)
class Row:
    """A kind of shards: what each row of data becomes, how it is passed, over which devices."""

    name: str
    title: str
    shard: Callable[[Any], Tree]
    claim: str = CLAIM
    given: Callable[[list[Tree], list[Any]], Any] = _as_given
    pick: Callable[[list[Any]], list[Any]] = all_of
    stacks: tuple[str, ...] = JNP
    topologies: tuple[str, ...] = ONE_PROCESS
    wide: int = WIDTH

    def shards(self, place: Place) -> list[Tree]:
        """One shard for each of the devices that are picked of this process's."""
        rows = place.rows(self.wide)
        count = len(self.pick(list(rows)))
        return [self.shard(row) for row in rows[:count]]


TABLE = (
    Row("float32", "float32 shards", cast("float32"), topologies=LOCAL, stacks=BOTH),
    Row("int32", "int32 shards", cast("int32"), stacks=BOTH),
    Row("uint8", "uint8 shards", cast("uint8")),
    Row("bool", "Shards of truth values", lambda row: row % 2 == 0, stacks=BOTH),
    Row("float16", "float16 shards", cast("float16")),
    Row("bfloat16", "bfloat16 shards", cast("bfloat16"), stacks=BOTH),
    Row("complex64", "complex64 shards", lambda row: (row * (1 + 2j)).astype(np.complex64)),
    Row("float64", "float64 shards become float32", cast("float64"), stacks=BOTH),
    Row("int64", "int64 shards become int32", cast("int64")),
    Row("python-int", "Shards that are Python ints", lambda row: int(row[0])),
    Row("python-float", "Shards that are Python floats", lambda row: float(row[0])),
    Row("python-bool", "Shards that are Python bools", lambda row: bool(row[0] % 2)),
    Row("python-complex", "Complex Python numbers", lambda row: complex(row[0], 1)),
    Row(
        "numpy-scalar", "Shards that are NumPy scalars", lambda row: np.float32(row[0]), stacks=BOTH
    ),
    Row(
        "zero-size",
        "Shards without elements",
        lambda row: np.zeros((0, 3), np.float32),
        stacks=BOTH,
    ),
    Row("two-dimensional", "Shards of two dimensions", lambda row: np.stack([row, row + 1])),
    Row(
        "jax-arrays",
        "Shards that are uncommitted JAX arrays",
        cast("float32"),
        given=_as_arrays,
        topologies=LOCAL,
    ),
    Row(
        "weak-arrays",
        "Shards that are weakly typed JAX arrays",
        lambda row: float(row[0]),
        given=_as_arrays,
    ),
    Row(
        "committed",
        "Shards that are committed, each to its own device",
        cast("float32"),
        given=_each_on_its_device,
        topologies=LOCAL,
        stacks=BOTH,
    ),
    Row(
        "committed-elsewhere",
        "Shards that are all committed to one device",
        cast("float32"),
        given=_all_on_the_last,
    ),
    Row("tuple-of-shards", "The shards come as a tuple", cast("float32"), given=_as_tuple),
    Row("dict", "Shards that are dicts", lambda row: {"b": row, "a": row[0]}, PYTREES, stacks=BOTH),
    Row("list", "Shards that are lists", lambda row: [row, row + 1], PYTREES),
    Row("tuple", "Shards that are tuples", lambda row: (row, row + 1), PYTREES),
    Row("named-tuple", "Shards that are namedtuples", lambda row: Pair(row, row * 3), PYTREES),
    Row(
        "nested",
        "Shards that are nested pytrees of several dtypes",
        lambda row: {"a": (row, [row.astype(np.int32)]), "b": Pair(row > 2, 1.5)},
        PYTREES,
        topologies=LOCAL,
    ),
    Row(
        "none-leaves",
        "Shards with None in place of a leaf",
        lambda row: {"a": row, "b": None, "c": (None, row)},
        PYTREES,
        stacks=BOTH,
    ),
    Row(
        "raw-keys",
        "Shards that are raw PRNG keys",
        cast("uint32"),
        SILENT,
        given=_as_arrays,
        topologies=LOCAL,
        wide=2,
    ),
    Row(
        "typed-keys",
        "Shards that are typed PRNG keys",
        cast("uint32"),
        SILENT,
        given=_as_keys,
        topologies=LOCAL,
        wide=2,
    ),
    Row(
        "arrays-of-typed-keys",
        "Shards that are arrays of typed PRNG keys",
        lambda row: np.stack([row, row + 1, row + 2]).astype(np.uint32),
        SILENT,
        given=_as_keys,
        wide=2,
    ),
    Row("devices-reversed", "Devices in reverse", cast("float32"), LEADING, pick=reversed_order),
    Row("devices-subset", "Half of the devices", cast("float32"), LEADING, pick=second_half),
    Row("devices-interleaved", "Interleaved", cast("float32"), LEADING, pick=_interleaved),
    Row("one-device", "One shard on one device", cast("float32"), LEADING, pick=first_alone),
    Row(
        "committed-reversed",
        "Committed shards on devices in reverse order",
        cast("float32"),
        given=_each_on_its_device,
        pick=reversed_order,
        stacks=BOTH,
    ),
)
BY_NAME = {row.name: row for row in TABLE}


def stacked(row: Row, place: Place) -> Tree:
    """The shards, leaf by leaf along a new leading axis."""
    return jax.tree.map(lambda *xs: narrow(np.stack(xs)), *row.shards(place))


def weak(row: Row, place: Place) -> list[bool]:
    """Which leaves are weakly typed: those whose shards are Python numbers."""
    return [is_weak(leaf) for leaf in jax.tree.leaves(row.shards(place)[0])]


def sharded_as_original(impl: Any, cluster: Any, name: str, stack: str) -> None:
    """The replacement, the original where there is one, and a map of the result."""
    row = BY_NAME[name]
    chosen = row.pick(cluster.local_devices)
    shards = row.given(row.shards(cluster), chosen)
    result = replace(impl, cluster, SHARDED, shards, chosen, stack)
    function = mapped_over(impl, chosen, everywhere=row.pick is all_of)
    cluster.twice(function, or_rows(result, stacked(row, cluster)))


def _declare(row: Row, stack: str) -> None:
    def model(place: Place) -> list[Any]:
        return leaves_of(stacked(row, place))

    def mapped(place: Place) -> list[Any]:
        return [doubled(leaf) for leaf in model(place)]

    expectation = reproduced(
        returns(model, text="the shards along a new leading axis"),
        returns(mapped, text="that, doubled by the map"),
        lambda place: stacked(row, place),
        lambda place: weak(row, place),
    )
    clause(
        f"drop_in.sharded.{row.name}" + ("" if stack == "jnp" else ".np-stack"),
        claim=row.claim,
        needs=devices(2),
        topologies=row.topologies,
        parameters={"name": row.name, "stack": stack},
        title=f"{row.title}, stacked by {stack}.stack.",
        expect=dict.fromkeys(IMPLEMENTATIONS, expectation),
    )(sharded_as_original)


for _row in TABLE:
    for _stack in _row.stacks:
        _declare(_row, _stack)
