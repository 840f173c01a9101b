"""What the originals refuse: whether the replacements do, with an error of the same type and use.

The document promises to reproduce the originals' behaviour and says nothing of wrong input. A
replacement that returns where the original raised hides a mistake in the caller's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import devices
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import Place
from conformance.judging.columns import everywhere
from conformance.judging.expectation import (
    Expectation,
    every,
    raises,
    returns,
    steps,
    steps_if_taken,
)
from conformance.probing.bodies import doubled
from conformance.sections.drop_in import (
    NP,
    REPLICATED,
    SHARDED,
    SILENT,
    STACKINGS,
    Replaced,
    Stacking,
    map_over,
    narrow,
    put_sharded,
)

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

WIDTH = 3

Rows = list[Any]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A call that the original refuses.

    `argument` and `devices` make its arguments from one row and one device per device; `message`
    is what an error has to name to be of use. `otherwise`, of the rows, is what comes out where
    nothing is refused. `by_np` where the stacking is what would refuse: np.stack is tried too.
    """

    key: str
    title: str
    fact: str
    error: type[Exception]
    message: str
    argument: Callable[[Rows], Any]
    devices: Callable[[list[Any]], Any] = list
    otherwise: Callable[[Rows], Any] | None = None
    function: Replaced = SHARDED
    by_np: bool = False

    def refusal(self) -> Expectation:
        """The right shards are mapped, and the wrong call is refused by whatever is called."""
        meant = self.otherwise

        def otherwise(place: Place) -> Any:
            return meant(list(place.rows(WIDTH))) if meant is not None else None

        model = None if meant is None else otherwise
        error = raises(self.error, self.message, otherwise=model)
        right = returns(doubled(WIDTH), text="the right shards, doubled by the map")
        return every(
            steps(first_call=right, second_call=right),
            steps(replacement=error, replacement_again=error),
            steps_if_taken(original=error),
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
        r"\b4\b.*\b8\b|\b8\b.*\b4\b",
        lambda rows: rows[: len(rows) // 2],
    ),
    Wrong(
        "sharded.twice-the-shards",
        "Twice as many shards as devices",
        MULTIPLE,
        ValueError,
        r"\b16\b.*\b8\b|\b8\b.*\b16\b",
        lambda rows: rows + rows,
        otherwise=lambda rows: np.stack(rows + rows),
    ),
    Wrong(
        "sharded.one-shard-too-many",
        "One shard more than devices",
        COUNT,
        ValueError,
        r"\b9\b.*\b8\b|\b8\b.*\b9\b",
        lambda rows: rows + rows[:1],
    ),
    Wrong("sharded.no-shards", "No shards", NO_SHARDS, ValueError, r"\b0\b|empty", lambda rows: []),
    Wrong(
        "sharded.no-devices",
        "No devices",
        NO_DEVICES,
        ValueError,
        r"\b0\b|empty",
        _rows,
        lambda devices: [],
    ),
    Wrong(
        "sharded.nothing",
        "Neither shards nor devices",
        NO_SHARDS,
        TypeError,
        "missing",
        lambda rows: [],
        lambda devices: [],
    ),
    Wrong(
        "sharded.mixed-dtypes",
        "Shards of two dtypes",
        DTYPES,
        ValueError,
        "dtype",
        _dtypes,
        otherwise=_stacked,
        by_np=True,
    ),
    Wrong(
        "sharded.mixed-weak-types",
        "Shards of one dtype, half of them weakly typed",
        DTYPES,
        ValueError,
        "dtype",
        _weak_types,
        otherwise=lambda rows: np.stack([row[0] for row in rows]),
    ),
    Wrong(
        "sharded.mixed-shapes",
        "Shards of two shapes",
        SHAPES,
        ValueError,
        "shape",
        _shapes,
        by_np=True,
    ),
    Wrong(
        "sharded.mixed-structures",
        "Shards of two pytree structures",
        STRUCTURES,
        ValueError,
        "tuple",
        lambda rows: [(row,) for row in rows[:-1]] + [[rows[-1]]],
    ),
    Wrong(
        "sharded.mixed-dict-keys",
        "Shards that are dicts of different keys",
        STRUCTURES,
        ValueError,
        r"\bb\b",
        lambda rows: [{"a": row} for row in rows[:-1]] + [{"b": rows[-1]}],
    ),
    Wrong(
        "sharded.string-leaves",
        "Shards that are strings",
        LEAVES,
        TypeError,
        "valid JAX|ArrayLike",
        lambda rows: ["a" for _ in rows],
        by_np=True,
    ),
    Wrong(
        "sharded.object-leaves",
        "Shards that are objects of no array type",
        LEAVES,
        TypeError,
        "object",
        lambda rows: [object() for _ in rows],
        by_np=True,
    ),
    Wrong(
        "sharded.one-numpy-array",
        "The shards as one NumPy array",
        NO_SEQUENCE,
        TypeError,
        "sequence.*ndarray",
        np.stack,
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.one-jax-array",
        "The shards as one JAX array",
        NO_SEQUENCE,
        TypeError,
        "sequence.*Array",
        lambda rows: jax.numpy.asarray(np.stack(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.generator",
        "The shards as a generator",
        NO_SEQUENCE,
        TypeError,
        "sequence.*generator",
        lambda rows: (row for row in rows),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.dict-of-shards",
        "The shards as a dict",
        DICT,
        TypeError,
        "sequence.*dict",
        lambda rows: dict(enumerate(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "replicated.no-devices",
        "No devices",
        DEVICES,
        ValueError,
        "empty|at least one",
        _first,
        lambda devices: [],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.devices-as-array",
        "The devices as a NumPy array",
        DEVICE_ARRAY,
        ValueError,
        "devices.*sequence",
        _first,
        np.array,
        otherwise=_copies,
        function=REPLICATED,
    ),
    Wrong(
        "replicated.one-device-alone",
        "A device in place of a list of devices",
        DEVICES,
        ValueError,
        "devices",
        _first,
        lambda devices: devices[0],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.device-twice",
        "One device named twice",
        DEVICE_TWICE,
        ValueError,
        "distinct|duplicate|unique|twice",
        _first,
        lambda devices: [devices[0], devices[0]],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.string-leaf",
        "A string",
        LEAVES,
        TypeError,
        "valid JAX|ArrayLike",
        lambda rows: "a",
        function=REPLICATED,
    ),
    Wrong(
        "replicated.object-leaf",
        "An object of no array type",
        LEAVES,
        TypeError,
        "object",
        lambda rows: object(),
        function=REPLICATED,
    ),
)


@family(
    "drop_in.refusals.{wrong}{stacking}",
    wrong=WRONG,
    stacking=STACKINGS,
    only=lambda wrong, stacking: wrong.by_np or stacking is not NP,
    claim=SILENT,
    fact=lambda wrong: wrong.fact,
    title="{wrong.title}, given to the replacement with {stacking.name}.stack.",
    needs=devices(8),
    expect=lambda wrong: everywhere(wrong.refusal()),
)
def refused(impl: Any, cluster: Any, wrong: Wrong, stacking: Stacking) -> None:
    """A map of the right shards; then the wrong call, of the replacement and of the original."""
    there = cluster.local_devices
    rows = list(cluster.rows(WIDTH))
    function = map_over(impl, there, all_devices=True)
    cluster.twice(function, put_sharded(rows, there, stacking.stack))

    def call(put: Callable[..., Any], *more: Any) -> Any:
        # Made anew for each call, since a generator can be used only once.
        return put(wrong.argument(list(rows)), wrong.devices(there), *more)

    for step in ("replacement", "replacement again"):
        cluster.step(step, call, wrong.function.replacement, stacking.stack)
    impl.select()
    original = wrong.function.original
    if original is not None:
        cluster.step("original", call, original)
