"""Pmap bodies that shard_map maps unchanged, and NumPy's prediction of the effect.

A shard_map body sees `(1, ...)` where a pmap body sees `(...)`. One NumPy model applied to both
predicts, without JAX, what the unchanged body gives: pmap's value, another shape, an error, or
(which no error and no shape shows) another value of the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.sections.rank import map_of_blocks
from conformance.spec.arrays import WEAKLY
from conformance.spec.columns import Columns
from conformance.spec.comparing import RELATIVE_TOLERANCE
from conformance.spec.expectation import OfEachStep, every, raises, returns, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, Place, Topology
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows

SAME_VALUE = "same value"
OTHER_SHAPE = "different shape"
WRONG_VALUE = "same shape, wrong value"
ERROR = "error"

TRACED = "trace"  # the phase in which shard_map, or the body itself, refuses a rank

OUTCOME = "rank outcome"  # under which a step notes the class that it fell into

UNCHANGED = ("unchanged", "unchanged again")
# The topologies on which an unchanged body is tested, and the reason for leaving out others.
SAMPLE = Place(Topology(1, 8), 0)
ONE_BLOCK = "the body uses its own device's block only"

ADJUSTED = ("squeezed", "squeezed again", "indexed", "indexed again")

Data = Callable[[Place], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of what one device holds."""

    key: str
    sizes: tuple[int, ...]


# The cause of what changes because the block has one dimension more than the row.
RANK_KEPT = "body-keeps-the-mapped-axis"

LINE = Shape("1d", (4,))
GRID = Shape("2d", (2, 4))
SQUARE = Shape("square", (4, 4))
SHAPES = table(LINE, GRID, SQUARE)

_MULTIPLIER, _PRIME = 50, 131  # of a walk through 1 to 130 that neither rises nor falls for long


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error with which a body refuses a block of one row, while it is traced."""

    error: type[BaseException] | str
    pattern: str

    def expected(self, otherwise: Data) -> Expectation:
        """Expect the refusal; if a step returns instead, its result is compared with the right
        values.
        """
        return raises(self.error, self.pattern, phase=TRACED, otherwise=otherwise)


def contracting(left: int, right: int) -> Refusal:
    """A product over two axes of these sizes, as JAX refuses it."""
    return Refusal(
        TypeError,
        rf"contracting dimensions to have the same shape, got \({left},\) and \({right},\)",
    )


def scalar(dtype: Any) -> Refusal:
    """A body that returns a scalar, which has no axis for P('i') to join."""
    kind = rf"has shape {np.dtype(dtype)}\[\]\S*, which has rank 0 \(and 0 < 1\)"
    return Refusal(ValueError, rf"out_specs entry which is too long .*{kind}")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a row `x`: its source text, the program, and its NumPy model.

    `program` serves as the model too if no `model` is given. `shapes` are the tested shapes of a
    row; with `on_four`, those of rank one run in four processes too. `refused` says, by the key of
    a shape, how the block is refused, where NumPy refuses it too. `fact` is the finding that it
    varies, if it has another name.
    """

    key: str
    text: str
    program: Body
    model: Body | None = None
    shapes: tuple[Shape, ...] = (LINE,)
    on_four: bool = False
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    fact: str = ""

    @property
    def by_numpy(self) -> Body:
        """Return the NumPy model of a row."""
        return self.model or self.program

    @property
    def finding(self) -> str:
        """The clauses' fact."""
        return f"rank.{self.fact or self.key}"

    def topologies(self, shape: Shape) -> tuple[str, ...]:
        """Return the topologies on which the shape is tested."""
        return ONE_AND_FOUR if self.on_four and shape is LINE else ONE_PROCESS

    def left_out(self, shape: Shape) -> str:
        """Return why it runs nowhere else."""
        return "" if self.topologies(shape) == ONE_AND_FOUR else ONE_BLOCK

    def cause(self, shape: Shape) -> str:
        """Return why it changes in shard_map, where it does."""
        return cause_of(self.by_numpy, mixed(*shape.sizes), self.refused.get(shape.key))

    def outcomes(self, shape: Shape) -> Columns:
        """Return each implementation's expected result, for rows of this shape."""
        columns = outcomes(self.by_numpy, mixed(*shape.sizes), self.refused.get(shape.key))
        if self.program is not len:  # which returns a Python number
            return columns
        return {name: every(one, WEAKLY) for name, one in columns.items()}


def mixed(*sizes: int) -> Data:
    """This process's rows of the given sizes: distinct, unordered eighths, exact in float32."""

    def rows(place: Place) -> NDArray[Any]:
        walked: NDArray[Any] = place.all_rows(*sizes, dtype=np.int64) * _MULTIPLIER % _PRIME
        return place.mine((walked / 8).astype(np.float32))

    return rows


def reduced(model: Body, data: Data) -> Data:
    """Return pmap's expected result: the model of each row, stacked."""

    @described("the model of each row, stacked, as pmap does")
    def stacked(place: Place) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return _held(np.stack([np.asarray(model(_wide(row))) for row in data(place)]))

    return stacked


def preserved(model: Body, data: Data) -> Data:
    """Return shard_map's expected result of the same body: the results of blocks of one row,
    joined.
    """

    @described("the model of each block of one row, joined, as shard_map does")
    def joined(place: Place) -> NDArray[Any]:
        return _held(np.concatenate(_of_blocks(model, data, place)))

    return joined


def _of_blocks(model: Body, data: Data, place: Place) -> list[NDArray[Any]]:
    with np.errstate(all="ignore"):
        return [np.asarray(model(_wide(row[None]))) for row in data(place)]


def refusal(model: Body, data: Data, said: Refusal | None) -> Refusal | None:
    """Return how the unchanged body is refused: as `said`, or because it returns scalars; None if
    it is not.

    What NumPy cannot do is an error of the declaration, unless the row says that it is refused:
    otherwise a slip in a model would be a prediction that is easily met.
    """
    try:
        blocks = _of_blocks(model, data, SAMPLE)
    except Exception:
        if said is None:
            raise
        return said
    if said is not None:
        raise ValueError(f"a refusal is declared ({said.pattern}), but NumPy takes the block")
    return scalar(_held(blocks[0]).dtype) if blocks[0].ndim == 0 else None


def predicted(model: Body, data: Data, said: Refusal | None = None) -> str:
    """The class of the unchanged body, from NumPy alone."""
    if refusal(model, data, said) is not None:
        return ERROR
    return _compared(preserved(model, data)(SAMPLE), reduced(model, data)(SAMPLE))


def cause_of(model: Body, data: Data, said: Refusal | None = None) -> str:
    """Return the known issue that changes the unchanged body: its rank or, for a scalar, that
    blocks are joined.
    """
    as_ = predicted(model, data, said)
    if as_ == SAME_VALUE:
        return ""
    return "out-specs-join-blocks" if as_ == ERROR and said is None else RANK_KEPT


def outcomes(model: Body, data: Data, said: Refusal | None = None) -> Columns:
    """pmap returns the model's rows; unchanged, shard_map falls into the class that NumPy predicts.

    With its input squeezed or indexed, and the output's leading axis put back, it returns pmap's.
    """
    pmap, refused = reduced(model, data), refusal(model, data, said)
    unchanged = (
        returns(preserved(model, data), text="the model of blocks of one row, joined")
        if refused is None
        else refused.expected(otherwise=pmap)
    )
    wanted = returns(pmap, text="the model of each row")
    expected = dict.fromkeys(UNCHANGED, unchanged) | dict.fromkeys(ADJUSTED, wanted)
    named = {name.replace(" ", "_"): expectation for name, expectation in expected.items()}
    return {
        LEGACY_PMAP: twice(wanted),
        NEW_PMAP: twice(wanted),
        SHARD_MAP: every(classified(predicted(model, data, said)), steps(**named)),
    }


def classified(as_: str) -> Expectation:
    """The unchanged body falls into the class `as_`; what was seen starts with its class."""
    danger = " (the dangerous one)" if as_ == WRONG_VALUE else ""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        outcome = step.extra.get(OUTCOME)
        return outcome == as_, f"{outcome}: {step}"

    return OfEachStep(f"the unchanged body gives: {as_}{danger}", check_step, UNCHANGED)


def move(impl: Implementation, cluster: Cluster, body: Body, model: Body, data: Data) -> None:
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
