"""Shape manipulation, moved from a pmap body to a shard_map body as it is.

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
    mixed,
    move,
)
from conformance.spec.clause import devices
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

RESHAPE = "reshape"
TRANSPOSE = "transpose"
EXPAND_DIMS = "expand-dims"

EXPRESSIONS = table(
    Expression("reshape-flat", "x.reshape(-1)", lambda x: x.reshape(-1), fact=RESHAPE),
    Expression("reshape-fixed", "x.reshape(2, 2)", lambda x: x.reshape(2, 2), fact=RESHAPE),
    Expression(
        "reshape-batch",
        "x.reshape(x.shape[0], -1)",
        lambda x: x.reshape(x.shape[0], -1),
        shapes=(GRID,),
        fact=RESHAPE,
    ),
    Expression(
        "reshape-one-batch",
        "x.reshape(1, -1)",
        lambda x: x.reshape(1, -1),
        shapes=(GRID,),
        fact=RESHAPE,
    ),
    Expression("ravel", "jnp.ravel(x)", jnp.ravel, np.ravel, on_four=True, fact=RESHAPE),
    Expression("transpose", "x.T", lambda x: x.T, shapes=(LINE, GRID)),
    Expression(
        "transpose-axes",
        "x.transpose(1, 0)",
        lambda x: x.transpose(1, 0),
        shapes=(GRID,),
        refused={
            GRID.key: Refusal(
                TypeError,
                r"permutation isn't a permutation of operand dimensions, got permutation \(1, 0\) "
                r"for operand shape \(1, 2, 4\)",
            )
        },
        fact=TRANSPOSE,
    ),
    Expression(
        "swapaxes-first",
        "jnp.swapaxes(x, 0, 1)",
        lambda x: jnp.swapaxes(x, 0, 1),
        lambda x: np.swapaxes(x, 0, 1),
        shapes=(SQUARE,),
        fact=TRANSPOSE,
    ),
    Expression(
        "swapaxes-last",
        "jnp.swapaxes(x, -1, -2)",
        lambda x: jnp.swapaxes(x, -1, -2),
        lambda x: np.swapaxes(x, -1, -2),
        shapes=(GRID,),
        fact=TRANSPOSE,
    ),
    Expression(
        "moveaxis",
        "jnp.moveaxis(x, 0, -1)",
        lambda x: jnp.moveaxis(x, 0, -1),
        lambda x: np.moveaxis(x, 0, -1),
        shapes=(GRID,),
        fact=TRANSPOSE,
    ),
    Expression("squeeze", "jnp.squeeze(x)", jnp.squeeze, np.squeeze),
    Expression(
        "expand-dims-first",
        "jnp.expand_dims(x, 0)",
        lambda x: jnp.expand_dims(x, 0),
        lambda x: np.expand_dims(x, 0),
        fact=EXPAND_DIMS,
    ),
    Expression(
        "expand-dims-second",
        "jnp.expand_dims(x, 1)",
        lambda x: jnp.expand_dims(x, 1),
        lambda x: np.expand_dims(x, 1),
        fact=EXPAND_DIMS,
    ),
    Expression(
        "expand-dims-last",
        "jnp.expand_dims(x, -1)",
        lambda x: jnp.expand_dims(x, -1),
        lambda x: np.expand_dims(x, -1),
        fact=EXPAND_DIMS,
    ),
    Expression("pairwise", "x[:, None] - x[None, :]", lambda x: x[:, None] - x[None, :]),
    Expression(
        "concatenate",
        "jnp.concatenate([x, 2 * x])",
        lambda x: jnp.concatenate([x, 2 * x]),
        lambda x: np.concatenate([x, 2 * x]),
    ),
    Expression(
        "concatenate-last",
        "jnp.concatenate([x, 2 * x], axis=-1)",
        lambda x: jnp.concatenate([x, 2 * x], axis=-1),
        lambda x: np.concatenate([x, 2 * x], axis=-1),
        fact="concatenate",
    ),
    Expression(
        "stack",
        "jnp.stack([x, 2 * x])",
        lambda x: jnp.stack([x, 2 * x]),
        lambda x: np.stack([x, 2 * x]),
    ),
    Expression(
        "stack-last",
        "jnp.stack([x, 2 * x], axis=-1)",
        lambda x: jnp.stack([x, 2 * x], axis=-1),
        lambda x: np.stack([x, 2 * x], axis=-1),
        fact="stack",
    ),
    Expression("flip", "jnp.flip(x)", jnp.flip, np.flip, shapes=(LINE, GRID)),
    Expression(
        "flip-first",
        "jnp.flip(x, axis=0)",
        lambda x: jnp.flip(x, axis=0),
        lambda x: np.flip(x, axis=0),
        shapes=(GRID,),
        fact="flip",
    ),
    Expression(
        "roll-first",
        "jnp.roll(x, 1, axis=0)",
        lambda x: jnp.roll(x, 1, axis=0),
        lambda x: np.roll(x, 1, axis=0),
        fact="roll",
    ),
    Expression("repeat", "jnp.repeat(x, 2)", lambda x: jnp.repeat(x, 2), lambda x: np.repeat(x, 2)),
    Expression("pad", "jnp.pad(x, 1)", lambda x: jnp.pad(x, 1), lambda x: np.pad(x, 1)),
    Expression("diff", "jnp.diff(x)", jnp.diff, np.diff),
)


@family(
    "rank.{expression}.{shape}",
    expression=EXPRESSIONS,
    shape=SHAPES,
    only=lambda expression, shape: shape in expression.shapes,
    claim="migrate-pmap.rank-shape-manipulation",
    title="`{expression.text}` of {shape.sizes} per device, unchanged in shard_map",
    fact=lambda expression: expression.finding,
    needs=devices(2),
    topologies=lambda expression, shape: expression.topologies(shape),
    left_out=lambda expression, shape: expression.left_out(shape),
    cause=lambda expression, shape: expression.cause(shape),
    expect=lambda expression, shape: expression.outcomes(shape),
)
def of_shape(impl: Implementation, cluster: Cluster, expression: Expression, shape: Shape) -> None:
    """One row in another shape, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, expression.program, expression.by_numpy, mixed(*shape.sizes))
