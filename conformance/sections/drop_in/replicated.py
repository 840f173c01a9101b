"""The replacement of `device_put_replicated`, and the array without a leading axis beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.drop_in import (
    BROADCAST,
    BY_BROADCAST,
    LEADING,
    NP,
    OWN_DEVICES,
    RAW_KEYS,
    REPLICATED,
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
    put_replicated,
    replace,
    reproduced,
    reversed_order,
    second_half,
    split,
    taken,
    weak_leaves,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.expectation import returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap-later.device-put-replicated-replacement"
OF_PYTREES = "migrate-pmap-later.device-put-replicated-pytrees"

# The facts that the values vary.
DTYPES = "drop_in.replicated.dtypes"
PYTHON = "drop_in.replicated.python-numbers"
ARRAYS = "drop_in.replicated.jax-arrays"
PLACED = "drop_in.replicated.placed-arrays"
PYTREES = "drop_in.replicated.pytrees"
ON_DEVICES = "drop_in.replicated.devices"


def _as_given(value: Tree, devices: list[jax.Device]) -> Any:
    return value


def _as_arrays(value: Tree, devices: list[jax.Device]) -> Any:
    return jax.tree.map(jax.numpy.asarray, value)


def _on_the_last(value: Tree, devices: list[jax.Device]) -> Any:
    return jax.device_put(value, devices[-1])


def _spread(value: Tree, devices: list[jax.Device]) -> Any:
    return jax.device_put(value, split(devices, "other"))


def _as_keys(value: Tree, devices: list[jax.Device]) -> Any:
    return jax.random.wrap_key_data(jax.numpy.asarray(value))


@dataclass(frozen=True, slots=True)
class Value:
    """A value to replicate, made from one row of data, and the devices to which it is put.

    `by_np` selects np.stack as well.
    """

    key: str
    title: str
    made: Callable[[Any], Tree]
    fact: str
    claim: str = CLAIM
    given: Callable[[Tree, list[Any]], Any] = _as_given
    pick: Callable[[list[Any]], list[Any]] = all_of
    by_np: bool = False
    topologies: tuple[str, ...] = ONE_PROCESS
    width: int = 8

    def build(self, place: Place) -> Tree:
        """Return the value, made from the first row of this process."""
        return self.made(place.rows(self.width)[0])

    @described("one copy per device, leaf by leaf, along a new leading axis")
    def copies(self, place: Place) -> Tree:
        local = list(range(place.topology.devices_per_process))
        count = len(self.pick(local))
        return jax.tree.map(lambda leaf: narrow(np.stack([leaf] * count)), self.build(place))

    @property
    def left_out(self) -> str:
        """Return why it is not tried with several processes."""
        return OWN_DEVICES if self.topologies == ONE_PROCESS else ""

    def as_original(self) -> Expectation:
        """The copies, weakly typed where the value is."""
        return reproduced(
            "a copy per device along a new leading axis",
            self.copies,
            lambda place: weak_leaves(self.build(place)),
        )


VALUES: Mapping[str, Value] = table(
    Value(
        "float32",
        "A float32 array",
        cast("float32"),
        DTYPES,
        topologies=ONE_AND_SEVERAL,
        by_np=True,
    ),
    Value("int32", "An int32 array", cast("int32"), DTYPES, by_np=True),
    Value("bool", "An array of booleans", lambda row: row % 2 == 0, DTYPES, by_np=True),
    Value("float16", "A float16 array", cast("float16"), DTYPES),
    Value("bfloat16", "A bfloat16 array", cast("bfloat16"), DTYPES, by_np=True),
    Value(
        "complex64",
        "A complex64 array",
        lambda row: (row * (1 + 2j)).astype(np.complex64),
        DTYPES,
    ),
    Value("float64", "A float64 array becomes float32", cast("float64"), DTYPES, by_np=True),
    Value("int64", "An int64 array becomes int32", cast("int64"), DTYPES),
    Value("python-int", "A Python int", lambda row: int(row[0]), PYTHON),
    Value("python-float", "A Python float", lambda row: float(row[0]), PYTHON),
    Value("python-bool", "A Python bool", lambda row: bool(row[0] % 2), PYTHON),
    Value("numpy-scalar", "A NumPy scalar", lambda row: np.float32(row[0]), DTYPES, by_np=True),
    Value(
        "zero-size",
        "An array without elements",
        lambda row: np.zeros((0, 3), np.float32),
        ZERO_SIZE,
        by_np=True,
    ),
    Value(
        "jax-array",
        "An uncommitted JAX array",
        cast("float32"),
        ARRAYS,
        given=_as_arrays,
        topologies=ONE_AND_SEVERAL,
    ),
    Value(
        "weak-array",
        "A weakly typed JAX array",
        lambda row: float(row[0]),
        ARRAYS,
        given=_as_arrays,
    ),
    Value(
        "committed",
        "An array committed to one of the devices",
        cast("float32"),
        PLACED,
        given=_on_the_last,
        topologies=ONE_AND_SEVERAL,
        by_np=True,
    ),
    Value(
        "sharded",
        "An array that is already sharded over the devices",
        cast("float32"),
        PLACED,
        given=_spread,
    ),
    Value(
        "dict",
        "A dict",
        lambda row: {"b": row, "a": row[0]},
        PYTREES,
        OF_PYTREES,
        by_np=True,
    ),
    Value("tuple", "A tuple", lambda row: (row, row + 1), PYTREES, OF_PYTREES),
    Value("named-tuple", "A namedtuple", lambda row: Pair(row, row * 3), PYTREES, OF_PYTREES),
    Value(
        "nested",
        "A nested pytree of several dtypes",
        lambda row: {"a": (row, [row.astype(np.int32)]), "b": Pair(row > 2, 1.5)},
        PYTREES,
        OF_PYTREES,
        topologies=ONE_AND_SEVERAL,
    ),
    Value(
        "none-leaves",
        "A pytree with None in place of a leaf",
        lambda row: {"a": row, "b": None},
        PYTREES,
        OF_PYTREES,
        by_np=True,
    ),
    Value(
        "raw-key",
        "A raw PRNG key",
        cast("uint32"),
        RAW_KEYS,
        SILENT,
        given=_as_arrays,
        topologies=ONE_AND_SEVERAL,
        width=2,
    ),
    Value(
        "typed-key",
        "A typed PRNG key",
        cast("uint32"),
        TYPED_KEYS,
        SILENT,
        given=_as_keys,
        topologies=ONE_AND_SEVERAL,
        width=2,
    ),
    Value(
        "array-of-typed-keys",
        "An array of typed PRNG keys",
        lambda row: np.stack([row, row + 1, row + 2]).astype(np.uint32),
        TYPED_KEYS,
        SILENT,
        given=_as_keys,
        width=2,
    ),
    Value(
        "devices-reversed",
        "Devices in reverse order",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=reversed_order,
        topologies=ONE_AND_FOUR,
    ),
    Value(
        "devices-subset",
        "Half of the devices",
        cast("float32"),
        ON_DEVICES,
        LEADING,
        pick=second_half,
        topologies=ONE_AND_FOUR,
    ),
    Value("one-device", "One device", cast("float32"), ON_DEVICES, LEADING, pick=first_alone),
)


@family(
    "drop_in.replicated.{value}{stacking}",
    value=VALUES,
    stacking=STACKINGS,
    only=lambda value, stacking: value.by_np or stacking is not NP,
    claim="{value.claim}",
    title="device_put_replicated, replaced with {stacking.name}.stack: {value.title}.",
    needs=devices(2),
    expect=lambda value: of_jax(value.as_original()),
)
def replicated_as_original(
    impl: Implementation, cluster: Cluster, value: Value, stacking: Stacking
) -> None:
    """The replacement, and the original where there is one."""
    chosen = value.pick(cluster.local_devices)
    argument = value.given(value.build(cluster), chosen)
    replace(impl, cluster, REPLICATED, argument, chosen, stacking)


# Values of which np.broadcast_to makes the copies: of Python numbers NumPy drops the weak type.
BROADCAST_VALUES: Mapping[str, Value] = {
    key: VALUES[key]
    for key in ("float32", "bfloat16", "float64", "numpy-scalar", "zero-size", "committed", "dict")
}


@family(
    "drop_in.replicated.{value}.np-broadcast",
    value=BROADCAST_VALUES,
    claim=BY_BROADCAST,
    title="device_put_replicated, replaced with np.broadcast_to: {value.title}.",
    fact="drop_in.replicated.np-broadcast",
    needs=devices(2),
    expect=lambda value: of_jax(value.as_original()),
)
def broadcast_as_original(impl: Implementation, cluster: Cluster, value: Value) -> None:
    """The replacement without a stack, and the original where there is one."""
    chosen = value.pick(cluster.local_devices)
    argument = value.given(value.build(cluster), chosen)
    replace(impl, cluster, REPLICATED, argument, chosen, BROADCAST)


@described("this process's first row, doubled, a copy per device")
def doubled_copies(place: Place) -> Tree:
    return np.stack([2 * place.rows(8)[0]] * place.topology.devices_per_process)


@described("this process's first row, as it was")
def first_row(place: Place) -> Tree:
    return place.rows(8)[0]


@clause(
    "drop_in.mapped.replicated.broadcast-donated",
    claim=BY_BROADCAST,
    title="Copies by np.broadcast_to may be donated: the array of which they are stays as it was.",
    needs=devices(2),
    left_out=OWN_DEVICES,
    expect=everywhere(
        steps(
            first_call=returns(doubled_copies),
            second_call=returns(doubled_copies),
            weights=returns(first_row),
        )
    ),
)
def donate_copies(impl: Implementation, cluster: Cluster) -> None:
    """A CPU's devices share the memory of an aligned array, of which they are given copies."""
    there = cluster.local_devices
    weights = jax.numpy.asarray(cluster.rows(8)[0])
    chosen = None if impl.is_pmap else list(there)
    mapped = impl.map(lambda x: x + x, devices=chosen, donate_argnums=(0,))
    for step in ("first call", "second call"):
        cluster.step(step, lambda: mapped(put_replicated(weights, there, BROADCAST.stack)))
    cluster.step("weights", lambda: np.asarray(weights))


# The mapped arguments: one row of each kind that a mapped function might refuse.
MAPPED: Mapping[str, Value] = {
    key: VALUES[key]
    for key in ("float32", "zero-size", "nested", "typed-key", "array-of-typed-keys")
}


@family(
    "drop_in.mapped.replicated.{value}",
    value=MAPPED,
    claim="{value.claim}",
    title=(
        "A mapped function accepts the replacement's result of device_put_replicated: "
        "{value.title}."
    ),
    needs=devices(2),
    expect=lambda value: everywhere(
        taken(value.copies, lambda place: weak_leaves(value.build(place)))
    ),
)
def replicated_into_map(impl: Implementation, cluster: Cluster, value: Value) -> None:
    """Call the replacement, then a mapped function on its result."""
    chosen = value.pick(cluster.local_devices)
    argument = value.given(value.build(cluster), chosen)
    give_to_map(impl, cluster, REPLICATED, argument, chosen, all_devices=value.pick is all_of)
