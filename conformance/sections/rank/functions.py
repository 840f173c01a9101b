"""Functions with an axis, moved from a pmap body to a shard_map body as they are.

Each without an axis, with the first and with the last, because that is all that decides: the last
axis means the same in both bodies, the first and "all of them" do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    OTHER_FUNCTIONS,
    REDUCTIONS,
    Row,
    declare,
    mixed,
    run,
    table,
)

UNSPECIFIED: dict[str, int] = {}
FIRST = {"axis": 0}
LAST = {"axis": -1}
AXES = (("no-axis", UNSPECIFIED), ("axis-first", FIRST), ("axis-last", LAST))

# The other two cases of a batch are asked of some functions only: they tell no more.
ALL_CASES = tuple((shape, axis) for shape in (LINE, GRID) for axis in AXES)
CASES = (*((LINE, axis) for axis in AXES), (GRID, AXES[1]))


@dataclass(frozen=True, slots=True)
class Function:
    """A function with an `axis` keyword, and NumPy's model of it."""

    claim: str
    said: str
    program: Callable[..., Any]
    model: Callable[..., Any]
    cases: tuple[tuple[tuple[int, ...], tuple[str, dict[str, int]]], ...] = CASES

    def rows(self) -> Iterator[Row]:
        """A row for each shape and axis."""
        for shape, (axis, options) in self.cases:
            arguments = "".join(f", {key}={value}" for key, value in options.items())
            yield Row(
                self.claim,
                f"{self.said.rsplit('.', 1)[1].lower()}.{axis}",
                f"{self.said}(x{arguments})",
                partial(self.program, **options),
                partial(self.model, **options),
                shape,
            )


def logsumexp(x: Any, axis: int | None = None) -> Any:
    return np.log(np.exp(x).sum(axis))


def softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def standardize(x: Any, axis: int = -1, epsilon: float = 1e-5) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)


FUNCTIONS = (
    Function(REDUCTIONS, "jnp.sum", jnp.sum, np.sum, ALL_CASES),
    Function(REDUCTIONS, "jnp.mean", jnp.mean, np.mean, ALL_CASES),
    Function(REDUCTIONS, "jnp.max", jnp.max, np.max, ALL_CASES),
    Function(REDUCTIONS, "jnp.min", jnp.min, np.min),
    Function(REDUCTIONS, "jnp.prod", jnp.prod, np.prod),
    Function(REDUCTIONS, "jnp.std", jnp.std, np.std),
    Function(REDUCTIONS, "jnp.var", jnp.var, np.var),
    Function(REDUCTIONS, "jnp.argmax", jnp.argmax, np.argmax, ALL_CASES),
    Function(REDUCTIONS, "jnp.argmin", jnp.argmin, np.argmin),
    Function(REDUCTIONS, "jnp.cumsum", jnp.cumsum, np.cumsum, ALL_CASES),
    Function(REDUCTIONS, "jnp.cumprod", jnp.cumprod, np.cumprod),
    Function(REDUCTIONS, "jax.nn.logsumexp", jax.nn.logsumexp, logsumexp),
    Function(REDUCTIONS, "jnp.linalg.norm", jnp.linalg.norm, np.linalg.norm),
    Function(OTHER_FUNCTIONS, "jnp.sort", jnp.sort, np.sort),
    Function(OTHER_FUNCTIONS, "jnp.argsort", jnp.argsort, np.argsort),
    Function(OTHER_FUNCTIONS, "jax.nn.softmax", jax.nn.softmax, softmax),
    Function(OTHER_FUNCTIONS, "jax.nn.standardize", jax.nn.standardize, standardize),
)

# Bodies that keep a row's shape whatever the rank, so that nothing but the value tells.
IDIOMS = (
    Row(
        REDUCTIONS,
        "centred.no-axis",
        "x - x.mean()",
        lambda x: x - x.mean(),
        lambda x: x - x.mean(),
    ),
    Row(
        REDUCTIONS,
        "centred.axis-first",
        "x - x.mean(axis=0)",
        lambda x: x - x.mean(axis=0),
        lambda x: x - x.mean(axis=0),
    ).on_four(),
    Row(
        REDUCTIONS,
        "centred.axis-first",
        "x - x.mean(axis=0)",
        lambda x: x - x.mean(axis=0),
        lambda x: x - x.mean(axis=0),
        GRID,
    ),
    Row(
        REDUCTIONS,
        "batch-normalised",
        "(x - x.mean(0)) / jnp.sqrt(x.var(0) + 1)",
        lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1),
        lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 1),
        GRID,
    ),
    Row(
        REDUCTIONS,
        "scaled-by-norm",
        "x / jnp.linalg.norm(x)",
        lambda x: x / jnp.linalg.norm(x),
        lambda x: x / np.linalg.norm(x),
    ),
    Row(
        REDUCTIONS,
        "scaled-by-norm-1",
        "x / jnp.linalg.norm(x, 1)",
        lambda x: x / jnp.linalg.norm(x, 1),
        lambda x: x / np.linalg.norm(x, 1),
    ),
    Row(
        REDUCTIONS,
        "scaled-by-norm-inf",
        "x / jnp.linalg.norm(x, jnp.inf)",
        lambda x: x / jnp.linalg.norm(x, jnp.inf),
        lambda x: x / np.linalg.norm(x, np.inf),
    ),
    Row(
        REDUCTIONS,
        "sum-keepdims.no-axis",
        "jnp.sum(x, keepdims=True)",
        lambda x: jnp.sum(x, keepdims=True),
        lambda x: np.sum(x, keepdims=True),
    ),
    Row(
        REDUCTIONS,
        "sum-keepdims.axis-first",
        "jnp.sum(x, axis=0, keepdims=True)",
        lambda x: jnp.sum(x, axis=0, keepdims=True),
        lambda x: np.sum(x, axis=0, keepdims=True),
        GRID,
    ),
    Row(
        OTHER_FUNCTIONS,
        "lax-cumsum",
        "jax.lax.cumsum(x)",
        jax.lax.cumsum,
        lambda x: np.cumsum(x, axis=0),
    ),
    Row(
        OTHER_FUNCTIONS,
        "top-k-values",
        "jax.lax.top_k(x, 2)[0]",
        lambda x: jax.lax.top_k(x, 2)[0],
        lambda x: np.sort(x)[..., ::-1][..., :2],
    ),
    Row(
        OTHER_FUNCTIONS,
        "top-k-indices",
        "jax.lax.top_k(x, 2)[1]",
        lambda x: jax.lax.top_k(x, 2)[1],
        lambda x: np.argsort(-x)[..., :2],
    ),
)

ROWS = table([*(row for function in FUNCTIONS for row in function.rows()), *IDIOMS])


def of_axis(impl: Any, cluster: Any, key: str) -> None:
    """A function of one row, as a pmap body and, unchanged, as a shard_map body."""
    row = ROWS[key]
    run(impl, cluster, row.program, row.model, mixed(*row.shape))


declare(ROWS, of_axis)
