"""What becomes of a pmap body that is mapped by shard_map as it is: its class, predicted by NumPy.

A shard_map body sees `(1, ...)` where a pmap body sees `(...)`. Applying one NumPy model to both
tells, without JAX, what the unchanged body must give: pmap's value, another shape, an error, or
(what no error and no shape betrays) another value of the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.catalogue.family import table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place, Topology
from conformance.judging.columns import Columns
from conformance.judging.expectation import (
    RELATIVE_TOLERANCE,
    Expectation,
    OfEachStep,
    every,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.probing.bodies import Body
from conformance.probing.recording import local_rows
from conformance.sections.rank import map_of_blocks

SAME_VALUE = "same value"
OTHER_SHAPE = "different shape"
WRONG_VALUE = "same shape, wrong value"
ERROR = "error"

OUTCOME = "rank outcome"  # under which a step notes the class that it fell into

UNCHANGED = ("unchanged", "unchanged again")
ADJUSTED = ("squeezed", "squeezed again", "indexed", "indexed again")

Data = Callable[[Place], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of what one device holds."""

    key: str
    sizes: tuple[int, ...]


LINE = Shape("1d", (4,))
GRID = Shape("2d", (2, 4))
SQUARE = Shape("square", (4, 4))
SHAPES = table(LINE, GRID, SQUARE)

_MULTIPLIER, _PRIME = 50, 131  # of a walk through 1 to 130 that neither rises nor falls for long


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a row `x`: as a user writes it, the program, and its NumPy model.

    `program` serves NumPy as well, where no `model` is given. `shapes` are those it is asked of;
    where `on_four`, that of a line in four processes too. `fact` is the finding that it varies,
    where that has another name.
    """

    key: str
    text: str
    program: Body
    model: Body | None = None
    shapes: tuple[Shape, ...] = (LINE,)
    on_four: bool = False
    fact: str = ""

    @property
    def by_numpy(self) -> Body:
        """What NumPy makes of a row."""
        return self.model or self.program

    @property
    def finding(self) -> str:
        """The clauses' fact."""
        return f"rank.{self.fact or self.key}"

    def topologies(self, shape: Shape) -> tuple[str, ...]:
        """Where it runs."""
        return ONE_AND_FOUR if self.on_four and shape is LINE else ONE_PROCESS


def mixed(*sizes: int) -> Data:
    """This process's rows of the given sizes: distinct, unordered eighths, exact in float32."""

    def rows(place: Place) -> NDArray[Any]:
        walked: NDArray[Any] = place.all_rows(*sizes, dtype=np.int64) * _MULTIPLIER % _PRIME
        return place.mine((walked / 8).astype(np.float32))

    return rows


def reduced(model: Body, data: Data) -> Data:
    """What the pmap must return: the model of each row, stacked."""

    def stacked(place: Place) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return _held(np.stack([np.asarray(model(_wide(row))) for row in data(place)]))

    stacked.__doc__ = "the model of each row, stacked, as pmap does"
    return stacked


def preserved(model: Body, data: Data) -> Data | None:
    """What shard_map must make of the same body, or None where it cannot but raise.

    It applies the body to blocks of one row and joins them; a scalar cannot be joined.
    """

    def joined(place: Place) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            blocks = [np.asarray(model(_wide(row[None]))) for row in data(place)]
            return _held(np.concatenate(blocks))

    joined.__doc__ = "the model of each block of one row, joined, as shard_map does"
    try:
        joined(Place(Topology(1, 2), 0))
    except Exception:  # whatever NumPy refuses with: the class is all that is predicted
        return None
    return joined


def predicted(model: Body, data: Data) -> str:
    """The class of the unchanged body, from NumPy alone."""
    place = Place(Topology(1, 8), 0)
    block = preserved(model, data)
    return ERROR if block is None else _compared(block(place), reduced(model, data)(place))


def outcomes(model: Body, data: Data) -> Columns:
    """pmap returns the model's rows; unchanged, shard_map falls into the class that NumPy predicts.

    With its input squeezed or indexed, and the output's leading axis put back, it returns pmap's.
    """
    pmap, block = reduced(model, data), preserved(model, data)
    unchanged = (
        raises("Exception", "", otherwise=pmap)
        if block is None
        else returns(block, text="the model of blocks of one row, joined")
    )
    wanted = returns(pmap, text="the model of each row")
    expected = dict.fromkeys(UNCHANGED, unchanged) | dict.fromkeys(ADJUSTED, wanted)
    named = {name.replace(" ", "_"): expectation for name, expectation in expected.items()}
    return {
        LEGACY_PMAP: wanted,
        NEW_PMAP: wanted,
        SHARD_MAP: every(classified(predicted(model, data)), steps(**named)),
    }


def classified(as_: str) -> Expectation:
    """The unchanged body falls into the class `as_`; what was seen starts with its class."""
    danger = " (the dangerous one)" if as_ == WRONG_VALUE else ""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        outcome = step.extra.get(OUTCOME)
        return outcome == as_, f"{outcome}: {step}"

    return OfEachStep(f"the unchanged body gives: {as_}{danger}", of, UNCHANGED)


def move(impl: Any, cluster: Any, body: Body, model: Body, data: Data) -> None:
    """The body as a pmap; or in shard_map, unchanged, then with each of the rank adjustments."""
    rows = impl.given(data(cluster))
    if impl.is_pmap:
        cluster.twice(impl.map(lambda x: body(x)), rows)
        return
    unchanged, wanted = map_of_blocks(impl, lambda x: body(x)), reduced(model, data)(cluster)
    for name in UNCHANGED:
        result = cluster.step(name, unchanged, rows)
        seen = ERROR if result is None else _compared(local_rows(result), wanted)
        cluster.note(OUTCOME, seen)
    adjusted: Mapping[str, Body] = {
        "squeezed": lambda x: jax.numpy.expand_dims(body(x.squeeze(0)), 0),
        "indexed": lambda x: jax.numpy.expand_dims(body(x[0]), 0),
    }
    for name, ranked in adjusted.items():
        function = map_of_blocks(impl, ranked)
        cluster.step(name, function, rows)
        cluster.step(f"{name} again", function, rows)


def _compared(seen: NDArray[Any], wanted: NDArray[Any]) -> str:
    if seen.shape != wanted.shape:
        return OTHER_SHAPE
    same = np.allclose(seen, wanted, rtol=RELATIVE_TOLERANCE, atol=0, equal_nan=True)
    return SAME_VALUE if same else WRONG_VALUE


def _wide(row: NDArray[Any]) -> NDArray[Any]:
    return row.astype(np.float64) if row.dtype == np.float32 else row


def _held(array: NDArray[Any]) -> NDArray[Any]:
    """The array in the dtype that JAX holds it in."""
    narrow = {"float64": np.float32, "int64": np.int32}
    return array.astype(narrow.get(str(array.dtype), array.dtype))
