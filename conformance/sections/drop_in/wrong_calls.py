"""Calls that the originals of the drop-ins refuse, each with what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.drop_in import (
    NP,
    REPLICATED,
    SHARDED,
    Replaced,
    Stacking,
    narrow,
    of_the_original,
)
from conformance.spec.expectation import every, raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place

# The facts that the calls vary.
COUNT = "drop_in.refusals.count-of-shards"
MULTIPLE = "drop_in.refusals.multiple-of-the-shards"
NO_SHARDS = "drop_in.refusals.no-shards"
NO_DEVICES = "drop_in.refusals.no-devices"
DTYPES = "drop_in.refusals.mixed-dtypes"
SHAPES = "drop_in.refusals.mixed-shapes"
STRUCTURES = "drop_in.refusals.mixed-structures"
LEAVES = "drop_in.refusals.leaves-of-no-array-type"
NO_SEQUENCE = "drop_in.refusals.shards-in-no-sequence"
DICT = "drop_in.refusals.dict-of-shards"
DEVICES = "drop_in.refusals.replicated-devices"
DEVICE_ARRAY = "drop_in.refusals.devices-as-array"
DEVICE_TWICE = "drop_in.refusals.device-twice"

# Error texts that several wrong calls share.
CONSISTENT = "must have consistent shape and dtype, but got "
SEQUENCE = "`shards` input must be a sequence; got "
NON_EMPTY = "`devices` argument to `device_put_replicated must be a non-empty sequence"
STRING = "Argument 'a' of type <class 'str'> is not a valid JAX type"
STRING_STACKED = "expected ArrayLike, got a of type <class 'str'>"
OBJECT = "of type '<class 'object'>' is not a valid JAX type"
OBJECT_STACKED = "requires ndarray or scalar arguments, got <class 'object'> at position 0"

NO_OTHER_PROCESS = "the result does not depend on the number of processes"

WIDTH = 3

Rows = list[Any]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A call that the original refuses.

    `argument` and `devices` make its arguments from one row and one device per device. `said` is
    what the original's error says, and what an error of the replacement is to say that is of as
    much use; `instead`, where it says as much in other words, what that one says. `otherwise`, of
    the rows, is what comes out where nothing is refused. `by_np` is what np.stack says where the
    stacking is what refuses: it is tried too.
    """

    key: str
    title: str
    fact: str
    error: type[Exception]
    said: str
    argument: Callable[[Rows], Any]
    devices: Callable[[list[Any]], Any] = list
    instead: str = ""
    by_np: str = ""
    otherwise: Callable[[Rows], Any] | None = None
    function: Replaced = SHARDED

    def refusal(self, stacking: Stacking) -> Expectation:
        """The right call is obeyed, and the wrong one refused, by whatever is called."""
        meant = self.otherwise

        def right(place: Place) -> Any:
            rows = list(place.rows(WIDTH))
            return np.stack(rows) if self.function is SHARDED else _copies(rows)

        def otherwise(place: Place) -> Any:
            return meant(list(place.rows(WIDTH))) if meant is not None else None

        model = None if meant is None else otherwise
        said = self.by_np if stacking is NP else self.instead
        error = raises(self.error, said or self.said, otherwise=model)
        obeyed = returns(right, text="what is right is stacked")
        return every(
            steps(right_call=obeyed),
            steps(replacement=error, replacement_again=error),
            of_the_original(raises(self.error, self.said)),
        )


def _rows(rows: Rows) -> Any:
    return rows


def _dtypes(rows: Rows) -> Any:
    half = len(rows) // 2
    return rows[:half] + [row.astype(np.int32) for row in rows[half:]]


def _weak_types(rows: Rows) -> Any:
    half = len(rows) // 2
    return [row[0] for row in rows[:half]] + [float(row[0]) for row in rows[half:]]


def _shapes(rows: Rows) -> Any:
    return [*rows[:-1], rows[-1][:-1]]


def _stacked(rows: Rows) -> Any:
    return narrow(np.stack(rows))


def _first(rows: Rows) -> Any:
    return rows[0]


def _copies(rows: Rows) -> Any:
    return np.stack([rows[0]] * len(rows))


WRONG: Mapping[str, Wrong] = table(
    Wrong(
        "sharded.half-the-shards",
        "Half as many shards as devices",
        COUNT,
        ValueError,
        r"len\(shards\) = 4 must equal len\(devices\) = 8",
        lambda rows: rows[: len(rows) // 2],
        instead=r"dimension 0 should be divisible by 8, but it is equal to 4"
        r"|axis 0 is partitioned 8 times, but the dimension size is 4",
    ),
    Wrong(
        "sharded.twice-the-shards",
        "Twice as many shards as devices",
        MULTIPLE,
        ValueError,
        r"len\(shards\) = 16 must equal len\(devices\) = 8",
        lambda rows: rows + rows,
        otherwise=lambda rows: np.stack(rows + rows),
    ),
    Wrong(
        "sharded.one-shard-too-many",
        "One more shard than devices",
        COUNT,
        ValueError,
        r"len\(shards\) = 9 must equal len\(devices\) = 8",
        lambda rows: rows + rows[:1],
        instead=r"dimension 0 should be divisible by 8, but it is equal to 9"
        r"|axis 0 is partitioned 8 times, but the dimension size is 9",
    ),
    Wrong(
        "sharded.no-shards",
        "No shards",
        NO_SHARDS,
        ValueError,
        r"len\(shards\) = 0 must equal len\(devices\) = 8",
        lambda rows: [],
    ),
    Wrong(
        "sharded.no-devices",
        "No devices",
        NO_DEVICES,
        ValueError,
        r"len\(shards\) = 8 must equal len\(devices\) = 0",
        _rows,
        lambda devices: [],
    ),
    Wrong(
        "sharded.nothing",
        "Neither shards nor devices",
        NO_SHARDS,
        TypeError,
        r"map\(\) missing 1 required positional argument: 'tree'",
        lambda rows: [],
        lambda devices: [],
    ),
    Wrong(
        "sharded.mixed-dtypes",
        "Shards of two dtypes",
        DTYPES,
        ValueError,
        CONSISTENT + r"float32\[3\] and int32\[3\]",
        _dtypes,
        otherwise=_stacked,
        by_np=CONSISTENT + r"float32\[3\] and int32\[3\]",
    ),
    Wrong(
        "sharded.mixed-weak-types",
        "Shards of one dtype, half of them weakly typed",
        DTYPES,
        ValueError,
        CONSISTENT + r"float32\[\] and ~float32\[\]",
        _weak_types,
        otherwise=lambda rows: np.stack([row[0] for row in rows]),
    ),
    Wrong(
        "sharded.mixed-shapes",
        "Shards of two shapes",
        SHAPES,
        ValueError,
        CONSISTENT + r"float32\[3\] and float32\[2\]",
        _shapes,
        instead="All input arrays must have the same shape",
        by_np="all input arrays must have the same shape",
    ),
    Wrong(
        "sharded.mixed-structures",
        "Shards of two pytree structures",
        STRUCTURES,
        ValueError,
        r"Expected tuple, got \[array\(|"
        r"different types at key path.*type\s+<class 'tuple'>\s.*different type\s+<class 'list'>",
        lambda rows: [(row,) for row in rows[:-1]] + [[rows[-1]]],
    ),
    Wrong(
        "sharded.mixed-dict-keys",
        "Shards that are dicts of different keys",
        STRUCTURES,
        ValueError,
        r"Dict key mismatch; expected keys: \['a'\]; (present keys: \['b'\]|dict: \{'b': )|"
        r"metadata\s+\('a',\)\s.*\smetadata\s+\('b',\)",
        lambda rows: [{"a": row} for row in rows[:-1]] + [{"b": rows[-1]}],
    ),
    Wrong(
        "sharded.string-leaves",
        "Shards that are strings",
        LEAVES,
        TypeError,
        STRING,
        lambda rows: ["a" for _ in rows],
        instead=STRING_STACKED,
        by_np="Dtype <U1 is not a valid JAX array type",
    ),
    Wrong(
        "sharded.object-leaves",
        "Shards that are not arrays",
        LEAVES,
        TypeError,
        OBJECT,
        lambda rows: [object() for _ in rows],
        instead=OBJECT_STACKED,
        by_np="Dtype object is not a valid JAX array type",
    ),
    Wrong(
        "sharded.one-numpy-array",
        "The shards as one NumPy array",
        NO_SEQUENCE,
        TypeError,
        SEQUENCE + "<class 'numpy[.]ndarray'>",
        np.stack,
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.one-jax-array",
        "The shards as one JAX array",
        NO_SEQUENCE,
        TypeError,
        SEQUENCE + "<class 'jaxlib[.]_jax[.]ArrayImpl'>",
        lambda rows: jax.numpy.asarray(np.stack(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.generator",
        "The shards as a generator",
        NO_SEQUENCE,
        TypeError,
        SEQUENCE + "<class 'generator'>",
        lambda rows: (row for row in rows),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.dict-of-shards",
        "The shards as a dict",
        DICT,
        TypeError,
        SEQUENCE + "<class 'dict'>",
        lambda rows: dict(enumerate(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "replicated.no-devices",
        "No devices",
        DEVICES,
        ValueError,
        NON_EMPTY,
        _first,
        lambda devices: [],
        instead="Need at least one array to stack",
        function=REPLICATED,
    ),
    Wrong(
        "replicated.devices-as-array",
        "The devices as a NumPy array",
        DEVICE_ARRAY,
        ValueError,
        NON_EMPTY,
        _first,
        np.array,
        otherwise=_copies,
        function=REPLICATED,
    ),
    Wrong(
        "replicated.one-device-alone",
        "A device instead of a list of devices",
        DEVICES,
        ValueError,
        NON_EMPTY,
        _first,
        lambda devices: devices[0],
        instead=r"ndim of its first argument \(`devices`\).*devices.ndim == 0",
        function=REPLICATED,
    ),
    Wrong(
        "replicated.device-twice",
        "One device listed twice",
        DEVICE_TWICE,
        ValueError,
        "input arrays must be from distinct devices",
        _first,
        lambda devices: [devices[0], devices[0]],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.string-leaf",
        "A string",
        LEAVES,
        TypeError,
        STRING,
        lambda rows: "a",
        instead=STRING_STACKED,
        function=REPLICATED,
    ),
    Wrong(
        "replicated.object-leaf",
        "An object that is not an array",
        LEAVES,
        TypeError,
        OBJECT,
        lambda rows: object(),
        instead=OBJECT_STACKED,
        function=REPLICATED,
    ),
)
