"""Linear algebra, moved from a pmap body to a shard_map body as it is.

No one axis decides here: what each expression does with one more leading dimension of size 1 is
its own.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    SHAPES,
    SQUARE,
    Expression,
    Refusal,
    Shape,
    contracting,
    mixed,
    move,
)
from conformance.spec.clause import devices
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

V = np.array([1, 2, 0, 3], np.float32)
W = np.array([[1, 0, 2], [0, 3, 1], [2, 1, 0], [1, 1, 1]], np.float32)

LAST_AXIS = "product-over-last-axis"
FROM_LEFT = "product-from-left"
WITH_ITSELF = "product-with-itself"

EXPRESSIONS = table(
    Expression(
        "dot-vector",
        "jnp.dot(x, v)",
        lambda x: jnp.dot(x, V),
        lambda x: np.dot(x, V),
        fact=LAST_AXIS,
    ),
    Expression(
        "dot-matrix",
        "jnp.dot(x, w)",
        lambda x: jnp.dot(x, W),
        lambda x: np.dot(x, W),
        shapes=(LINE, GRID),
        on_four=True,
        fact=LAST_AXIS,
    ),
    Expression(
        "dot-from-left",
        "jnp.dot(w.T, x)",
        lambda x: jnp.dot(W.T, x),
        lambda x: np.dot(W.T, x),
        shapes=(LINE, SQUARE),
        refused={LINE.key: contracting(4, 1)},
        fact=FROM_LEFT,
    ),
    Expression(
        "dot-self",
        "jnp.dot(x, x)",
        lambda x: jnp.dot(x, x),
        lambda x: np.dot(x, x),
        shapes=(LINE, SQUARE),
        refused={LINE.key: contracting(4, 1)},
        fact=WITH_ITSELF,
    ),
    Expression("vdot", "jnp.vdot(x, v)", lambda x: jnp.vdot(x, V), lambda x: np.vdot(x, V)),
    Expression("matmul-vector", "x @ v", lambda x: x @ V, fact=LAST_AXIS),
    Expression("matmul-matrix", "x @ w", lambda x: x @ W, shapes=(LINE, GRID), fact=LAST_AXIS),
    Expression(
        "matmul-from-left",
        "w.T @ x",
        lambda x: W.T @ x,
        shapes=(LINE, SQUARE),
        refused={LINE.key: contracting(4, 1)},
        fact=FROM_LEFT,
    ),
    Expression(
        "gram",
        "x.T @ x",
        lambda x: x.T @ x,
        shapes=(GRID,),
        refused={GRID.key: contracting(1, 2)},
        fact=WITH_ITSELF,
    ),
    Expression(
        "einsum",
        "jnp.einsum('i,ij->j', x, w)",
        lambda x: jnp.einsum("i,ij->j", x, W),
        lambda x: np.einsum("i,ij->j", x, W),
        refused={
            LINE.key: Refusal(
                ValueError,
                "Einstein sum subscript 'i' does not contain the correct number of indices "
                "for operand 0",
            )
        },
    ),
    Expression(
        "einsum-ellipsis",
        "jnp.einsum('...i,ij->...j', x, w)",
        lambda x: jnp.einsum("...i,ij->...j", x, W),
        lambda x: np.einsum("...i,ij->...j", x, W),
        fact="einsum",
    ),
    Expression(
        "tensordot",
        "jnp.tensordot(x, w, axes=1)",
        lambda x: jnp.tensordot(x, W, axes=1),
        lambda x: np.tensordot(x, W, axes=1),
    ),
    Expression(
        "tensordot-axis-first",
        "jnp.tensordot(x, w, axes=(0, 0))",
        lambda x: jnp.tensordot(x, W, axes=(0, 0)),
        lambda x: np.tensordot(x, W, axes=(0, 0)),
        refused={LINE.key: contracting(1, 4)},
        fact="tensordot",
    ),
    Expression("outer", "jnp.outer(x, v)", lambda x: jnp.outer(x, V), lambda x: np.outer(x, V)),
    Expression(
        "inner",
        "jnp.inner(x, v)",
        lambda x: jnp.inner(x, V),
        lambda x: np.inner(x, V),
        fact=LAST_AXIS,
    ),
    Expression("trace", "jnp.trace(x)", jnp.trace, np.trace, shapes=(SQUARE,), fact="diagonal"),
    Expression("diagonal", "jnp.diagonal(x)", jnp.diagonal, np.diagonal, shapes=(SQUARE,)),
)


@family(
    "rank.{expression}.{shape}",
    expression=EXPRESSIONS,
    shape=SHAPES,
    only=lambda expression, shape: shape in expression.shapes,
    claim="migrate-pmap.rank-linear-algebra",
    title="`{expression.text}` of {shape.sizes} per device, unchanged in shard_map",
    fact=lambda expression: expression.finding,
    needs=devices(2),
    topologies=lambda expression, shape: expression.topologies(shape),
    left_out=lambda expression, shape: expression.left_out(shape),
    cause=lambda expression, shape: expression.cause(shape),
    expect=lambda expression, shape: expression.outcomes(shape),
)
def of_linear_algebra(
    impl: Implementation, cluster: Cluster, expression: Expression, shape: Shape
) -> None:
    """A product or the like of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, expression.program, expression.by_numpy, mixed(*shape.sizes))
