"""Linear algebra, shape manipulation and indexing, moved from a pmap body to a shard_map body.

As in `rank_functions`, but these have no one axis that decides: what each does with one more
leading dimension of size 1 is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINEAR_ALGEBRA,
    OTHER_FUNCTIONS,
    SHAPE_MANIPULATION,
    SQUARE,
    Body,
    Row,
    declare,
    mixed,
    run,
    table,
)

V = np.array([1, 2, 0, 3], np.float32)
W = np.array([[1, 0, 2], [0, 3, 1], [2, 1, 0], [1, 1, 1]], np.float32)


def both(body: Callable[[Any, Any], Any]) -> tuple[Body, Body]:
    """The program and its model, from a body of the array library and the row."""
    return lambda x: body(jnp, x), lambda x: body(np, x)


def by_method(body: Body) -> tuple[Body, Body]:
    """The program and its model, from a body that asks nothing of the array library."""
    return body, body


def clamped(index: int) -> Body:
    """x[index] as JAX documents it: out of bounds means the last."""
    return lambda x: x[min(index, len(x) - 1)]


def filled(index: int) -> Body:
    """jnp.take as JAX documents it: out of bounds means NaN."""
    return lambda x: x[index] if index < len(x) else np.full(x.shape[1:], np.nan)


def with_zero(index: int) -> Body:
    """A copy with zero at the index, as JAX documents it: out of bounds is left out."""

    def model(x: Any) -> Any:
        copy = x.copy()
        if index < len(x):
            copy[index] = 0
        return copy

    return model


def three_of(x: Any) -> Any:
    a, _, _, d = x
    return a - d


def by_row_norm(x: Any) -> Any:
    return np.stack([row / row.sum() for row in x])


def scanned(x: Any) -> Any:
    _, sums = jax.lax.scan(lambda total, v: (total + v,) * 2, jnp.zeros_like(x[0]), x)
    return sums


LINEAR = (
    Row(LINEAR_ALGEBRA, "dot-vector", "jnp.dot(x, v)", *both(lambda m, x: m.dot(x, V))),
    Row(LINEAR_ALGEBRA, "dot-matrix", "jnp.dot(x, w)", *both(lambda m, x: m.dot(x, W))).on_four(),
    Row(LINEAR_ALGEBRA, "dot-matrix", "jnp.dot(x, w)", *both(lambda m, x: m.dot(x, W)), GRID),
    Row(LINEAR_ALGEBRA, "dot-from-left", "jnp.dot(w.T, x)", *both(lambda m, x: m.dot(W.T, x))),
    Row(
        LINEAR_ALGEBRA,
        "dot-from-left",
        "jnp.dot(w.T, x)",
        *both(lambda m, x: m.dot(W.T, x)),
        SQUARE,
    ),
    Row(LINEAR_ALGEBRA, "dot-self", "jnp.dot(x, x)", *both(lambda m, x: m.dot(x, x))),
    Row(LINEAR_ALGEBRA, "dot-self", "jnp.dot(x, x)", *both(lambda m, x: m.dot(x, x)), SQUARE),
    Row(LINEAR_ALGEBRA, "vdot", "jnp.vdot(x, v)", *both(lambda m, x: m.vdot(x, V))),
    Row(LINEAR_ALGEBRA, "matmul-vector", "x @ v", *by_method(lambda x: x @ V)),
    Row(LINEAR_ALGEBRA, "matmul-matrix", "x @ w", *by_method(lambda x: x @ W)),
    Row(LINEAR_ALGEBRA, "matmul-matrix", "x @ w", *by_method(lambda x: x @ W), GRID),
    Row(LINEAR_ALGEBRA, "matmul-from-left", "w.T @ x", *by_method(lambda x: W.T @ x)),
    Row(LINEAR_ALGEBRA, "matmul-from-left", "w.T @ x", *by_method(lambda x: W.T @ x), SQUARE),
    Row(LINEAR_ALGEBRA, "gram", "x.T @ x", *by_method(lambda x: x.T @ x), GRID),
    Row(
        LINEAR_ALGEBRA,
        "einsum",
        "jnp.einsum('i,ij->j', x, w)",
        *both(lambda m, x: m.einsum("i,ij->j", x, W)),
    ),
    Row(
        LINEAR_ALGEBRA,
        "einsum-ellipsis",
        "jnp.einsum('...i,ij->...j', x, w)",
        *both(lambda m, x: m.einsum("...i,ij->...j", x, W)),
    ),
    Row(
        LINEAR_ALGEBRA,
        "tensordot",
        "jnp.tensordot(x, w, axes=1)",
        *both(lambda m, x: m.tensordot(x, W, axes=1)),
    ),
    Row(
        LINEAR_ALGEBRA,
        "tensordot-axis-first",
        "jnp.tensordot(x, w, axes=(0, 0))",
        *both(lambda m, x: m.tensordot(x, W, axes=(0, 0))),
    ),
    Row(LINEAR_ALGEBRA, "outer", "jnp.outer(x, v)", *both(lambda m, x: m.outer(x, V))),
    Row(LINEAR_ALGEBRA, "inner", "jnp.inner(x, v)", *both(lambda m, x: m.inner(x, V))),
    Row(LINEAR_ALGEBRA, "trace", "jnp.trace(x)", *both(lambda m, x: m.trace(x)), SQUARE),
    Row(
        LINEAR_ALGEBRA,
        "diagonal",
        "jnp.diagonal(x)",
        *both(lambda m, x: m.diagonal(x)),
        SQUARE,
    ),
)

SHAPED = (
    Row(SHAPE_MANIPULATION, "reshape-flat", "x.reshape(-1)", *by_method(lambda x: x.reshape(-1))),
    Row(
        SHAPE_MANIPULATION,
        "reshape-fixed",
        "x.reshape(2, 2)",
        *by_method(lambda x: x.reshape(2, 2)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "reshape-batch",
        "x.reshape(x.shape[0], -1)",
        *by_method(lambda x: x.reshape(x.shape[0], -1)),
        GRID,
    ),
    Row(
        SHAPE_MANIPULATION,
        "reshape-one-batch",
        "x.reshape(1, -1)",
        *by_method(lambda x: x.reshape(1, -1)),
        GRID,
    ),
    Row(SHAPE_MANIPULATION, "ravel", "jnp.ravel(x)", *both(lambda m, x: m.ravel(x))).on_four(),
    Row(SHAPE_MANIPULATION, "transpose", "x.T", *by_method(lambda x: x.T)),
    Row(SHAPE_MANIPULATION, "transpose", "x.T", *by_method(lambda x: x.T), GRID),
    Row(
        SHAPE_MANIPULATION,
        "transpose-axes",
        "x.transpose(1, 0)",
        *by_method(lambda x: x.transpose(1, 0)),
        GRID,
    ),
    Row(
        SHAPE_MANIPULATION,
        "swapaxes-first",
        "jnp.swapaxes(x, 0, 1)",
        *both(lambda m, x: m.swapaxes(x, 0, 1)),
        SQUARE,
    ),
    Row(
        SHAPE_MANIPULATION,
        "swapaxes-last",
        "jnp.swapaxes(x, -1, -2)",
        *both(lambda m, x: m.swapaxes(x, -1, -2)),
        GRID,
    ),
    Row(
        SHAPE_MANIPULATION,
        "moveaxis",
        "jnp.moveaxis(x, 0, -1)",
        *both(lambda m, x: m.moveaxis(x, 0, -1)),
        GRID,
    ),
    Row(SHAPE_MANIPULATION, "squeeze", "jnp.squeeze(x)", *both(lambda m, x: m.squeeze(x))),
    Row(
        SHAPE_MANIPULATION,
        "expand-dims-first",
        "jnp.expand_dims(x, 0)",
        *both(lambda m, x: m.expand_dims(x, 0)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "expand-dims-second",
        "jnp.expand_dims(x, 1)",
        *both(lambda m, x: m.expand_dims(x, 1)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "expand-dims-last",
        "jnp.expand_dims(x, -1)",
        *both(lambda m, x: m.expand_dims(x, -1)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "pairwise",
        "x[:, None] - x[None, :]",
        *by_method(lambda x: x[:, None] - x[None, :]),
    ),
    Row(
        SHAPE_MANIPULATION,
        "concatenate",
        "jnp.concatenate([x, 2 * x])",
        *both(lambda m, x: m.concatenate([x, 2 * x])),
    ),
    Row(
        SHAPE_MANIPULATION,
        "concatenate-last",
        "jnp.concatenate([x, 2 * x], axis=-1)",
        *both(lambda m, x: m.concatenate([x, 2 * x], axis=-1)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "stack",
        "jnp.stack([x, 2 * x])",
        *both(lambda m, x: m.stack([x, 2 * x])),
    ),
    Row(
        SHAPE_MANIPULATION,
        "stack-last",
        "jnp.stack([x, 2 * x], axis=-1)",
        *both(lambda m, x: m.stack([x, 2 * x], axis=-1)),
    ),
    Row(SHAPE_MANIPULATION, "flip", "jnp.flip(x)", *both(lambda m, x: m.flip(x))),
    Row(SHAPE_MANIPULATION, "flip", "jnp.flip(x)", *both(lambda m, x: m.flip(x)), GRID),
    Row(
        SHAPE_MANIPULATION,
        "flip-first",
        "jnp.flip(x, axis=0)",
        *both(lambda m, x: m.flip(x, axis=0)),
        GRID,
    ),
    Row(
        SHAPE_MANIPULATION,
        "roll-first",
        "jnp.roll(x, 1, axis=0)",
        *both(lambda m, x: m.roll(x, 1, axis=0)),
    ),
    Row(
        SHAPE_MANIPULATION,
        "repeat",
        "jnp.repeat(x, 2)",
        *both(lambda m, x: m.repeat(x, 2)),
    ),
    Row(SHAPE_MANIPULATION, "pad", "jnp.pad(x, 1)", *both(lambda m, x: m.pad(x, 1))),
    Row(SHAPE_MANIPULATION, "diff", "jnp.diff(x)", *both(lambda m, x: m.diff(x))),
)

INDEXED = (
    Row(OTHER_FUNCTIONS, "index-first", "x[0]", *by_method(lambda x: x[0])).on_four(),
    Row(OTHER_FUNCTIONS, "index-first", "x[0]", *by_method(lambda x: x[0]), GRID),
    Row(OTHER_FUNCTIONS, "index-second", "x[1]", lambda x: x[1], clamped(1)),
    Row(OTHER_FUNCTIONS, "index-last", "x[-1]", *by_method(lambda x: x[-1])),
    Row(OTHER_FUNCTIONS, "index-ellipsis", "x[..., 0]", *by_method(lambda x: x[..., 0])),
    Row(OTHER_FUNCTIONS, "column", "x[:, 0]", *by_method(lambda x: x[:, 0]), GRID),
    Row(OTHER_FUNCTIONS, "column", "x[:, 0]", *by_method(lambda x: x[:, 0]), SQUARE),
    Row(OTHER_FUNCTIONS, "reversed", "x[::-1]", *by_method(lambda x: x[::-1])),
    Row(OTHER_FUNCTIONS, "from-first", "x - x[0]", *by_method(lambda x: x - x[0])).on_four(),
    Row(OTHER_FUNCTIONS, "length", "len(x)", *by_method(len)),
    Row(OTHER_FUNCTIONS, "by-length", "x / len(x)", *by_method(lambda x: x / len(x))).on_four(),
    Row(
        OTHER_FUNCTIONS,
        "positions",
        "x + jnp.arange(x.shape[0])",
        *both(lambda m, x: x + m.arange(x.shape[0])),
    ),
    Row(
        OTHER_FUNCTIONS,
        "iterated",
        "jnp.stack([v * v for v in x])",
        *both(lambda m, x: m.stack([v * v for v in x])),
    ),
    Row(
        OTHER_FUNCTIONS,
        "enumerated",
        "jnp.stack([v * k for k, v in enumerate(x)])",
        *both(lambda m, x: m.stack([v * k for k, v in enumerate(x)])),
    ),
    Row(OTHER_FUNCTIONS, "unpacked", "a, b, c, d = x", *by_method(three_of)),
    Row(
        OTHER_FUNCTIONS,
        "take",
        "jnp.take(x, 1)",
        *both(lambda m, x: m.take(x, 1)),
    ),
    Row(
        OTHER_FUNCTIONS,
        "take-axis-first",
        "jnp.take(x, 1, axis=0)",
        lambda x: jnp.take(x, 1, axis=0),
        filled(1),
    ),
    Row(OTHER_FUNCTIONS, "set-first", "x.at[0].set(0)", lambda x: x.at[0].set(0), with_zero(0)),
    Row(OTHER_FUNCTIONS, "set-second", "x.at[1].set(0)", lambda x: x.at[1].set(0), with_zero(1)),
    Row(
        OTHER_FUNCTIONS,
        "vmap",
        "jax.vmap(lambda v: v / v.sum())(x)",
        jax.vmap(lambda v: v / v.sum()),
        by_row_norm,
        GRID,
    ),
    Row(OTHER_FUNCTIONS, "scan", "jax.lax.scan of a running sum", scanned, lambda x: x.cumsum(0)),
)

ROWS = table([*LINEAR, *SHAPED, *INDEXED])


def of_structure(impl: Any, cluster: Any, key: str) -> None:
    """A function of one row, as a pmap body and, unchanged, as a shard_map body."""
    row = ROWS[key]
    run(impl, cluster, row.program, row.model, mixed(*row.shape))


declare(ROWS, of_structure)
