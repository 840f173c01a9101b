"""What the originals refuse: whether the replacements do, with an error of the same type and use.

The document promises to reproduce the originals' behaviour and says nothing of wrong input. A
replacement that returns where the original raised hides a mistake in the caller's code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import Place
from conformance.judging.expectation import every, raises, returns, steps, steps_if_taken
from conformance.sections.drop_in import (
    BOTH,
    JNP,
    REPLACEMENTS,
    REPLICATED,
    SHARDED,
    SILENT,
    mapped_over,
    narrow,
    put_sharded,
    stack_of,
)

WIDTH = 3

Rows = list[Any]


@dataclass(frozen=True)
class Wrong:
    """A call that the original refuses.

    `argument` and `devices` make its arguments from one row and one device per device; `message`
    is what an error has to name to be of use. `otherwise`, of the rows, is what comes out where
    nothing is refused.
    """

    name: str
    title: str
    error: type[Exception]
    message: str
    argument: Callable[[Rows], Any]
    devices: Callable[[list[Any]], Any] = list
    otherwise: Callable[[Rows], Any] | None = None
    function: str = SHARDED
    stacks: tuple[str, ...] = JNP  # both where the stacking is what would refuse


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


TABLE = (
    Wrong(
        "sharded.half-the-shards",
        "Half as many shards as devices.",
        ValueError,
        r"\b4\b.*\b8\b|\b8\b.*\b4\b",
        lambda rows: rows[: len(rows) // 2],
    ),
    Wrong(
        "sharded.twice-the-shards",
        "Twice as many shards as devices.",
        ValueError,
        r"\b16\b.*\b8\b|\b8\b.*\b16\b",
        lambda rows: rows + rows,
        otherwise=lambda rows: np.stack(rows + rows),
    ),
    Wrong(
        "sharded.one-shard-too-many",
        "One shard more than devices.",
        ValueError,
        r"\b9\b.*\b8\b|\b8\b.*\b9\b",
        lambda rows: rows + rows[:1],
    ),
    Wrong("sharded.no-shards", "No shards.", ValueError, r"\b0\b|empty", lambda rows: []),
    Wrong(
        "sharded.no-devices", "No devices.", ValueError, r"\b0\b|empty", _rows, lambda devices: []
    ),
    Wrong(
        "sharded.nothing",
        "Neither shards nor devices.",
        TypeError,
        "missing",
        lambda rows: [],
        lambda devices: [],
    ),
    Wrong(
        "sharded.mixed-dtypes",
        "Shards of two dtypes.",
        ValueError,
        "dtype",
        _dtypes,
        otherwise=_stacked,
        stacks=BOTH,
    ),
    Wrong(
        "sharded.mixed-weak-types",
        "Shards of one dtype, half of them weakly typed.",
        ValueError,
        "dtype",
        _weak_types,
        otherwise=lambda rows: np.stack([row[0] for row in rows]),
    ),
    Wrong(
        "sharded.mixed-shapes", "Shards of two shapes.", ValueError, "shape", _shapes, stacks=BOTH
    ),
    Wrong(
        "sharded.mixed-structures",
        "Shards of two pytree structures.",
        ValueError,
        "tuple",
        lambda rows: [(row,) for row in rows[:-1]] + [[rows[-1]]],
    ),
    Wrong(
        "sharded.mixed-dict-keys",
        "Shards that are dicts of different keys.",
        ValueError,
        r"\bb\b",
        lambda rows: [{"a": row} for row in rows[:-1]] + [{"b": rows[-1]}],
    ),
    Wrong(
        "sharded.string-leaves",
        "Shards that are strings.",
        TypeError,
        "valid JAX|ArrayLike",
        lambda rows: ["a" for _ in rows],
        stacks=BOTH,
    ),
    Wrong(
        "sharded.object-leaves",
        "Shards that are objects of no array type.",
        TypeError,
        "object",
        lambda rows: [object() for _ in rows],
        stacks=BOTH,
    ),
    Wrong(
        "sharded.one-numpy-array",
        "The shards as one NumPy array.",
        TypeError,
        "sequence.*ndarray",
        np.stack,
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.one-jax-array",
        "The shards as one JAX array.",
        TypeError,
        "sequence.*Array",
        lambda rows: jax.numpy.asarray(np.stack(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.generator",
        "The shards as a generator.",
        TypeError,
        "sequence.*generator",
        lambda rows: (row for row in rows),
        otherwise=_stacked,
    ),
    Wrong(
        "sharded.dict-of-shards",
        "The shards as a dict.",
        TypeError,
        "sequence.*dict",
        lambda rows: dict(enumerate(rows)),
        otherwise=_stacked,
    ),
    Wrong(
        "replicated.no-devices",
        "No devices.",
        ValueError,
        "empty|at least one",
        _first,
        lambda devices: [],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.devices-as-array",
        "The devices as a NumPy array.",
        ValueError,
        "devices.*sequence",
        _first,
        np.array,
        otherwise=_copies,
        function=REPLICATED,
    ),
    Wrong(
        "replicated.one-device-alone",
        "A device in place of a list of devices.",
        ValueError,
        "devices",
        _first,
        lambda devices: devices[0],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.device-twice",
        "One device named twice.",
        ValueError,
        "distinct|duplicate|unique|twice",
        _first,
        lambda devices: [devices[0], devices[0]],
        function=REPLICATED,
    ),
    Wrong(
        "replicated.string-leaf",
        "A string.",
        TypeError,
        "valid JAX|ArrayLike",
        lambda rows: "a",
        function=REPLICATED,
    ),
    Wrong(
        "replicated.object-leaf",
        "An object of no array type.",
        TypeError,
        "object",
        lambda rows: object(),
        function=REPLICATED,
    ),
)
BY_NAME = {wrong.name: wrong for wrong in TABLE}


def doubled(place: Place) -> Any:
    """the right shards, doubled by the map"""
    return place.rows(WIDTH) * 2


def refused(impl: Any, cluster: Any, name: str, stack: str) -> None:
    """A map of the right shards; then the wrong call, of the replacement and of the original."""
    wrong = BY_NAME[name]
    stacking = stack_of(stack)
    there = cluster.local_devices
    rows = list(cluster.rows(WIDTH))
    function = mapped_over(impl, there, everywhere=True)
    cluster.twice(function, put_sharded(rows, there, stacking))

    def call(put: Callable[..., Any], *more: Any) -> Any:
        # Made anew for each call, since a generator can be used only once.
        return put(wrong.argument(list(rows)), wrong.devices(there), *more)

    for step in ("replacement", "replacement again"):
        cluster.step(step, call, REPLACEMENTS[wrong.function], stacking)
    impl.select()
    original = getattr(jax, wrong.function, None)
    if original is not None:
        cluster.step("original", call, original)


def _declare(wrong: Wrong, stack: str) -> None:
    meant = wrong.otherwise

    def otherwise(place: Place) -> Any:
        return meant(list(place.rows(WIDTH))) if meant is not None else None

    model = None if meant is None else otherwise
    error = raises(wrong.error, wrong.message, otherwise=model)
    clause(
        f"drop_in.refusals.{wrong.name}" + ("" if stack == "jnp" else ".np-stack"),
        claim=SILENT,
        needs=devices(8),
        parameters={"name": wrong.name, "stack": stack},
        title=f"{wrong.title[:-1]}, given to the replacement with {stack}.stack.",
        expect=dict.fromkeys(
            IMPLEMENTATIONS,
            every(
                steps(first_call=returns(doubled), second_call=returns(doubled)),
                steps(replacement=error, replacement_again=error),
                steps_if_taken(original=error),
            ),
        ),
    )(refused)


for _wrong in TABLE:
    for _stack in _wrong.stacks:
        _declare(_wrong, _stack)
