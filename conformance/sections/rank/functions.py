"""Functions with an axis, moved from a pmap body to a shard_map body as they are.

Each without an axis, with the first and with the last, because that is all that decides: the last
axis means the same in both bodies, the first and "all of them" do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    ONE_BLOCK,
    SHAPES,
    Expression,
    Shape,
    cause_of,
    mixed,
    move,
    outcomes,
)
from conformance.spec.clause import devices
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

REDUCTIONS = "migrate-pmap.rank-reductions"
OTHER_FUNCTIONS = "migrate-pmap.rank-other-functions"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: as a user writes it after the function's first argument, and as keywords."""

    key: str
    text: str
    keywords: dict[str, int]


AXES = table(
    Axis("no-axis", "", {}),
    Axis("axis-first", ", axis=0", {"axis": 0}),
    Axis("axis-last", ", axis=-1", {"axis": -1}),
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function with an `axis` keyword: as a user writes it, the program, and NumPy's model.

    A grid is reduced over its first axis; where `all_axes`, without an axis and over the last too.
    """

    key: str
    text: str
    program: Callable[..., Any]
    model: Callable[..., Any]
    claim: str = REDUCTIONS
    all_axes: bool = False

    def asked(self, axis: Axis, shape: Shape) -> bool:
        """Return whether there is a clause: for most functions, a matrix's other two axes show
        nothing more.
        """
        return self.all_axes or shape is LINE or axis.key == "axis-first"


def logsumexp(x: Any, axis: int | None = None) -> Any:
    return np.log(np.exp(x).sum(axis))


def softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def standardize(x: Any, axis: int = -1, epsilon: float = 1e-5) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)


FUNCTIONS = table(
    Function("sum", "jnp.sum", jnp.sum, np.sum, all_axes=True),
    Function("mean", "jnp.mean", jnp.mean, np.mean, all_axes=True),
    Function("max", "jnp.max", jnp.max, np.max, all_axes=True),
    Function("min", "jnp.min", jnp.min, np.min),
    Function("prod", "jnp.prod", jnp.prod, np.prod),
    Function("std", "jnp.std", jnp.std, np.std),
    Function("var", "jnp.var", jnp.var, np.var),
    Function("argmax", "jnp.argmax", jnp.argmax, np.argmax, all_axes=True),
    Function("argmin", "jnp.argmin", jnp.argmin, np.argmin),
    Function("cumsum", "jnp.cumsum", jnp.cumsum, np.cumsum, all_axes=True),
    Function("cumprod", "jnp.cumprod", jnp.cumprod, np.cumprod),
    Function("logsumexp", "jax.nn.logsumexp", jax.nn.logsumexp, logsumexp),
    Function("norm", "jnp.linalg.norm", jnp.linalg.norm, np.linalg.norm),
    Function("sort", "jnp.sort", jnp.sort, np.sort, OTHER_FUNCTIONS),
    Function("argsort", "jnp.argsort", jnp.argsort, np.argsort, OTHER_FUNCTIONS),
    Function("softmax", "jax.nn.softmax", jax.nn.softmax, softmax, OTHER_FUNCTIONS),
    Function("standardize", "jax.nn.standardize", jax.nn.standardize, standardize, OTHER_FUNCTIONS),
)


@family(
    "rank.{function}.{axis}.{shape}",
    function=FUNCTIONS,
    axis=AXES,
    shape=table(LINE, GRID),
    only=lambda function, axis, shape: function.asked(axis, shape),
    title="`{function.text}(x{axis.text})` of {shape.sizes} per device, unchanged in shard_map",
    fact="rank.{function}",
    needs=devices(2),
    left_out=ONE_BLOCK,
    cause=lambda function, axis, shape: cause_of(
        partial(function.model, **axis.keywords), mixed(*shape.sizes)
    ),
    expect=lambda function, axis, shape: outcomes(
        partial(function.model, **axis.keywords), mixed(*shape.sizes)
    ),
)
def of_axis(
    impl: Implementation, cluster: Cluster, function: Function, axis: Axis, shape: Shape
) -> None:
    """A function of one row, as a pmap body and, unchanged, as a shard_map body."""
    program = partial(function.program, **axis.keywords)
    model = partial(function.model, **axis.keywords)
    move(impl, cluster, program, model, mixed(*shape.sizes))


# Bodies that keep a row's shape for every rank, so that only the value differs.
IDIOMS = table(
    Expression("centred.no-axis", "x - x.mean()", lambda x: x - x.mean(), fact="centred"),
    Expression(
        "centred.axis-first",
        "x - x.mean(axis=0)",
        lambda x: x - x.mean(axis=0),
        shapes=(LINE, GRID),
        on_four=True,
        fact="centred",
    ),
    Expression(
        "batch-normalised",
        "(x - x.mean(0)) / jnp.sqrt(x.var(0) + 1)",
        lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1),
        lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 1),
        shapes=(GRID,),
    ),
    Expression(
        "scaled-by-norm",
        "x / jnp.linalg.norm(x)",
        lambda x: x / jnp.linalg.norm(x),
        lambda x: x / np.linalg.norm(x),
    ),
    Expression(
        "scaled-by-norm-1",
        "x / jnp.linalg.norm(x, 1)",
        lambda x: x / jnp.linalg.norm(x, 1),
        lambda x: x / np.linalg.norm(x, 1),
        fact="scaled-by-norm",
    ),
    Expression(
        "scaled-by-norm-inf",
        "x / jnp.linalg.norm(x, jnp.inf)",
        lambda x: x / jnp.linalg.norm(x, jnp.inf),
        lambda x: x / np.linalg.norm(x, np.inf),
        fact="scaled-by-norm",
    ),
    Expression(
        "sum-keepdims.no-axis",
        "jnp.sum(x, keepdims=True)",
        lambda x: jnp.sum(x, keepdims=True),
        lambda x: np.sum(x, keepdims=True),
        fact="sum-keepdims",
    ),
    Expression(
        "sum-keepdims.axis-first",
        "jnp.sum(x, axis=0, keepdims=True)",
        lambda x: jnp.sum(x, axis=0, keepdims=True),
        lambda x: np.sum(x, axis=0, keepdims=True),
        shapes=(GRID,),
        fact="sum-keepdims",
    ),
)


@family(
    "rank.{expression}.{shape}",
    expression=IDIOMS,
    shape=SHAPES,
    only=lambda expression, shape: shape in expression.shapes,
    claim=REDUCTIONS,
    title="`{expression.text}` of {shape.sizes} per device, unchanged in shard_map",
    fact=lambda expression: expression.finding,
    needs=devices(2),
    topologies=lambda expression, shape: expression.topologies(shape),
    left_out=lambda expression, shape: expression.left_out(shape),
    cause=lambda expression, shape: expression.cause(shape),
    expect=lambda expression, shape: expression.outcomes(shape),
)
def of_idiom(impl: Implementation, cluster: Cluster, expression: Expression, shape: Shape) -> None:
    """A use of a reduction of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, expression.program, expression.by_numpy, mixed(*shape.sizes))
