"""The replacement of `device_put_replicated`, and the array without a leading axis beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, every, noted, returns, sharded, steps
from conformance.sections.drop_in import (
    BOTH,
    JNP,
    LEADING,
    LOCAL,
    REPLICATED,
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

CLAIM = "migrate-pmap-later.device-put-replicated-replacement"
PYTREES = "migrate-pmap-later.device-put-replicated-pytrees"

KEPT_WHOLE = "fully replicated"


def _as_given(value: Tree, devices: list[Any]) -> Any:
    return value


def _as_arrays(value: Tree, devices: list[Any]) -> Any:
    return jax.tree.map(jax.numpy.asarray, value)


def _on_the_last(value: Tree, devices: list[Any]) -> Any:
    return jax.device_put(value, devices[-1])


def _spread(value: Tree, devices: list[Any]) -> Any:
    mesh = jax.sharding.Mesh(np.array(devices), ("other",))
    return jax.device_put(
        value, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("other"))
    )


def _as_keys(value: Tree, devices: list[Any]) -> Any:
    return jax.random.wrap_key_data(jax.numpy.asarray(value))


@dataclass(frozen=True)
class Row:
    """What is replicated: made from one row of data, and how and over which devices it is put."""

    name: str
    title: str
    value: Callable[[Any], Tree]
    claim: str = CLAIM
    given: Callable[[Tree, list[Any]], Any] = _as_given
    pick: Callable[[list[Any]], list[Any]] = all_of
    stacks: tuple[str, ...] = JNP
    topologies: tuple[str, ...] = ONE_PROCESS
    wide: int = 8


TABLE = (
    Row("float32", "A float32 array", cast("float32"), topologies=LOCAL, stacks=BOTH),
    Row("int32", "An int32 array", cast("int32"), stacks=BOTH),
    Row("bool", "An array of truth values", lambda row: row % 2 == 0, stacks=BOTH),
    Row("float16", "A float16 array", cast("float16")),
    Row("bfloat16", "A bfloat16 array", cast("bfloat16"), stacks=BOTH),
    Row("complex64", "A complex64 array", lambda row: (row * (1 + 2j)).astype(np.complex64)),
    Row("float64", "A float64 array becomes float32", cast("float64"), stacks=BOTH),
    Row("int64", "An int64 array becomes int32", cast("int64")),
    Row("python-int", "A Python int", lambda row: int(row[0])),
    Row("python-float", "A Python float", lambda row: float(row[0])),
    Row("python-bool", "A Python bool", lambda row: bool(row[0] % 2)),
    Row("numpy-scalar", "A NumPy scalar", lambda row: np.float32(row[0]), stacks=BOTH),
    Row(
        "zero-size",
        "An array without elements",
        lambda row: np.zeros((0, 3), np.float32),
        stacks=BOTH,
    ),
    Row(
        "jax-array",
        "An uncommitted JAX array",
        cast("float32"),
        given=_as_arrays,
        topologies=LOCAL,
    ),
    Row(
        "weak-array",
        "A weakly typed JAX array",
        lambda row: float(row[0]),
        given=_as_arrays,
    ),
    Row(
        "committed",
        "An array that is committed to one of the devices",
        cast("float32"),
        given=_on_the_last,
        topologies=LOCAL,
        stacks=BOTH,
    ),
    Row(
        "sharded",
        "An array that is sharded over the devices already",
        cast("float32"),
        given=_spread,
    ),
    Row("dict", "A dict", lambda row: {"b": row, "a": row[0]}, PYTREES, stacks=BOTH),
    Row("tuple", "A tuple", lambda row: (row, row + 1), PYTREES),
    Row("named-tuple", "A namedtuple", lambda row: Pair(row, row * 3), PYTREES),
    Row(
        "nested",
        "A nested pytree of several dtypes",
        lambda row: {"a": (row, [row.astype(np.int32)]), "b": Pair(row > 2, 1.5)},
        PYTREES,
        topologies=LOCAL,
    ),
    Row(
        "none-leaves",
        "A pytree with None in place of a leaf",
        lambda row: {"a": row, "b": None},
        PYTREES,
        stacks=BOTH,
    ),
    Row(
        "raw-key",
        "A raw PRNG key",
        cast("uint32"),
        SILENT,
        given=_as_arrays,
        topologies=LOCAL,
        wide=2,
    ),
    Row(
        "typed-key",
        "A typed PRNG key",
        cast("uint32"),
        SILENT,
        given=_as_keys,
        topologies=LOCAL,
        wide=2,
    ),
    Row(
        "array-of-typed-keys",
        "An array of typed PRNG keys",
        lambda row: np.stack([row, row + 1, row + 2]).astype(np.uint32),
        SILENT,
        given=_as_keys,
        wide=2,
    ),
    Row("devices-reversed", "Devices in reverse", cast("float32"), LEADING, pick=reversed_order),
    Row("devices-subset", "Half of the devices", cast("float32"), LEADING, pick=second_half),
    Row("one-device", "One device", cast("float32"), LEADING, pick=first_alone),
)
BY_NAME = {row.name: row for row in TABLE}


def value_of(row: Row, place: Place) -> Tree:
    """What is put: made from the first row of this process."""
    return row.value(place.rows(row.wide)[0])


def repeated(row: Row, place: Place) -> Tree:
    """One copy per device, leaf by leaf, along a new leading axis."""
    local = list(range(place.topology.devices_per_process))
    count = len(row.pick(local))
    return jax.tree.map(lambda x: narrow(np.stack([x] * count)), value_of(row, place))


def replicated_as_original(impl: Any, cluster: Any, name: str, stack: str) -> None:
    """The replacement, the original where there is one, and a map of the result."""
    row = BY_NAME[name]
    chosen = row.pick(cluster.local_devices)
    value = row.given(value_of(row, cluster), chosen)
    result = replace(impl, cluster, REPLICATED, value, chosen, stack)
    function = mapped_over(impl, chosen, everywhere=row.pick is all_of)
    cluster.twice(function, or_rows(result, repeated(row, cluster)))


def _declare(row: Row, stack: str) -> None:
    def model(place: Place) -> list[Any]:
        return leaves_of(repeated(row, place))

    def mapped(place: Place) -> list[Any]:
        return [doubled(leaf) for leaf in model(place)]

    def weak(place: Place) -> list[bool]:
        return [is_weak(leaf) for leaf in jax.tree.leaves(value_of(row, place))]

    expectation = reproduced(
        returns(model, text="a copy per device along a new leading axis"),
        returns(mapped, text="that, doubled by the map"),
        lambda place: repeated(row, place),
        weak,
    )
    clause(
        f"drop_in.replicated.{row.name}" + ("" if stack == "jnp" else ".np-stack"),
        claim=row.claim,
        needs=devices(2),
        topologies=row.topologies,
        parameters={"name": row.name, "stack": stack},
        title=f"{row.title}, copies stacked by {stack}.stack.",
        expect=dict.fromkeys(IMPLEMENTATIONS, expectation),
    )(replicated_as_original)


for _row in TABLE:
    for _stack in _row.stacks:
        _declare(_row, _stack)


# --- Without the leading axis


def added(place: Place) -> Any:
    """the array itself"""
    return place.rows(4)[0]


def plus_one(place: Place) -> Any:
    """this process's rows plus the replicated array"""
    return place.rows(4) + added(place)


def _without_axes(place: Place, sharding: Mapping[str, Any]) -> bool:
    return sharding["type"] == "NamedSharding" and not any(sharding["spec"])


WHOLE: Expectation = noted(
    KEPT_WHOLE, "every device holds the whole array", lambda _, value: value is True
)


@clause(
    "drop_in.true-replication",
    claim="migrate-pmap-later.true-replication",
    needs=devices(2),
    topologies=LOCAL,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(replicated=returns(added), replicated_again=returns(added)),
            steps(replicated=sharded("with a spec that names no axis", _without_axes)),
            steps(replicated=WHOLE, replicated_again=WHOLE),
            steps(first_call=returns(plus_one), second_call=returns(plus_one)),
        ),
    ),
)
def true_replication(impl: Any, cluster: Any) -> None:
    """Without a leading axis: `device_put` with an empty spec, then an unmapped argument."""
    mesh = jax.sharding.Mesh(np.array(cluster.local_devices), ("x",))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    whole = None
    for step in ("replicated", "replicated again"):
        whole = cluster.step(step, jax.device_put, cluster.rows(4)[0], everywhere)
        shapes = {shard.data.shape for shard in whole.addressable_shards}
        held = whole.is_fully_replicated and shapes == {whole.shape}
        cluster.note(KEPT_WHOLE, held and len(whole.addressable_shards) == len(mesh.devices))
    chosen = None if impl.is_pmap else cluster.local_devices
    function = impl.map(lambda x, y: x + y, in_axes=(0, None), devices=chosen)
    cluster.twice(function, cluster.rows(4), whole)
