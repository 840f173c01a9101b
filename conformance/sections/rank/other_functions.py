"""Code that reads a row's elements one by one, and other functions that use its rank.

Indices, iteration, lengths, loops and random keys, moved unchanged from a pmap body to a shard_map
body. Those with an axis are in `functions`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    ONE_BLOCK,
    SHAPES,
    SQUARE,
    Expression,
    Refusal,
    Shape,
    mixed,
    move,
    outcomes,
)
from conformance.spec.clause import devices
from conformance.spec.defaults import Defaults
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation

INDEX = "index"
COLUMN = "column"
LENGTH = "length"
ITERATION = "iteration"

DEFAULTS = Defaults(
    claim="migrate-pmap.rank-other-functions",
    needs=devices(2),
    left_out=ONE_BLOCK,
    fact="rank.random-key",
)


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


def by_row_sum(x: Any) -> Any:
    return np.stack([row / row.sum() for row in x])


def scanned(x: Any) -> Any:
    _, sums = jax.lax.scan(lambda total, v: (total + v,) * 2, jnp.zeros_like(x[0]), x)
    return sums


EXPRESSIONS = table(
    Expression(
        "index-first", "x[0]", lambda x: x[0], shapes=(LINE, GRID), on_four=True, fact=INDEX
    ),
    Expression("index-second", "x[1]", lambda x: x[1], clamped(1), fact=INDEX),
    Expression("index-last", "x[-1]", lambda x: x[-1], fact=INDEX),
    Expression("index-ellipsis", "x[..., 0]", lambda x: x[..., 0], fact=COLUMN),
    Expression("column", "x[:, 0]", lambda x: x[:, 0], shapes=(GRID, SQUARE)),
    Expression("reversed", "x[::-1]", lambda x: x[::-1], fact="flip"),
    Expression("from-first", "x - x[0]", lambda x: x - x[0], on_four=True),
    Expression("length", "len(x)", len),
    Expression("by-length", "x / len(x)", lambda x: x / len(x), on_four=True, fact=LENGTH),
    Expression(
        "positions",
        "x + jnp.arange(x.shape[0])",
        lambda x: x + jnp.arange(x.shape[0]),
        lambda x: x + np.arange(x.shape[0]),
        fact=LENGTH,
    ),
    Expression(
        "iterated",
        "jnp.stack([v * v for v in x])",
        lambda x: jnp.stack([v * v for v in x]),
        lambda x: np.stack([v * v for v in x]),
        fact=ITERATION,
    ),
    Expression(
        "enumerated",
        "jnp.stack([v * k for k, v in enumerate(x)])",
        lambda x: jnp.stack([v * k for k, v in enumerate(x)]),
        lambda x: np.stack([v * k for k, v in enumerate(x)]),
        fact=ITERATION,
    ),
    Expression(
        "unpacked",
        "a, b, c, d = x",
        three_of,
        refused={
            LINE.key: Refusal(ValueError, r"not enough values to unpack \(expected 4, got 1\)")
        },
        fact=ITERATION,
    ),
    Expression("take", "jnp.take(x, 1)", lambda x: jnp.take(x, 1), lambda x: np.take(x, 1)),
    Expression(
        "take-axis-first",
        "jnp.take(x, 1, axis=0)",
        lambda x: jnp.take(x, 1, axis=0),
        filled(1),
        fact="take",
    ),
    Expression("set-first", "x.at[0].set(0)", lambda x: x.at[0].set(0), with_zero(0), fact="set"),
    Expression("set-second", "x.at[1].set(0)", lambda x: x.at[1].set(0), with_zero(1), fact="set"),
    Expression(
        "vmap",
        "jax.vmap(lambda v: v / v.sum())(x)",
        jax.vmap(lambda v: v / v.sum()),
        by_row_sum,
        shapes=(GRID,),
    ),
    Expression("scan", "jax.lax.scan of a running sum", scanned, lambda x: x.cumsum(0)),
    Expression(
        "lax-cumsum",
        "jax.lax.cumsum(x)",
        jax.lax.cumsum,
        lambda x: np.cumsum(x, axis=0),
        fact="cumsum",
    ),
    Expression(
        "top-k-values",
        "jax.lax.top_k(x, 2)[0]",
        lambda x: jax.lax.top_k(x, 2)[0],
        lambda x: np.sort(x)[..., ::-1][..., :2],
        fact="top-k",
    ),
    Expression(
        "top-k-indices",
        "jax.lax.top_k(x, 2)[1]",
        lambda x: jax.lax.top_k(x, 2)[1],
        lambda x: np.argsort(-x)[..., :2],
        fact="top-k",
    ),
)


@DEFAULTS.family(
    "rank.{expression}.{shape}",
    expression=EXPRESSIONS,
    shape=SHAPES,
    only=lambda expression, shape: shape in expression.shapes,
    title="`{expression.text}` of {shape.sizes} per device, unchanged in shard_map",
    fact=lambda expression: expression.finding,
    topologies=lambda expression, shape: expression.topologies(shape),
    left_out=lambda expression, shape: expression.left_out(shape),
    cause=lambda expression, shape: expression.cause(shape),
    expect=lambda expression, shape: expression.outcomes(shape),
)
def of_elements(
    impl: Implementation, cluster: Cluster, expression: Expression, shape: Shape
) -> None:
    """A function of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, expression.program, expression.by_numpy, mixed(*shape.sizes))


# --- random keys ---------------------------------------------------------------------------------

CARDS = 8  # numbers that are shuffled: few enough that one sort does it

# The rotations of Threefry-2x32, and what its third key word is made with.
ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = np.uint32(0x1BD11BDA)


def keys(place: Place) -> Any:
    """One raw key per device."""
    return place.rows(2, dtype=np.uint32)


def threefry(key: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """The block cipher by which JAX makes random bits: 20 rounds of Threefry-2x32."""
    words = key[0], key[1], key[0] ^ key[1] ^ PARITY
    high, low = high + words[0], low + words[1]
    for turn in range(5):
        for rotation in ROTATIONS[turn % 2]:
            high = high + low
            low = (low << np.uint32(rotation) | low >> np.uint32(32 - rotation)) ^ high
        high = high + words[(turn + 1) % 3]
        low = low + words[(turn + 2) % 3] + np.uint32(turn + 1)
    return high, low


def shuffled(key: Any) -> Any:
    """`jax.random.permutation(key, 8)`: sorted by the random bits of the key's second half."""
    if key.ndim != 1:
        raise ValueError("one key is wanted")
    places = np.arange(CARDS, dtype=np.uint32)
    split = np.array(threefry(key, np.zeros(1, np.uint32), np.ones(1, np.uint32))).ravel()
    high, low = threefry(split, np.zeros_like(places), places)
    return np.argsort(high ^ low, kind="stable").astype(np.int32)


def several_keys(shape: str) -> Refusal:
    """A random function that is given an array of keys of this shape."""
    return Refusal(
        ValueError, rf"permutation accepts a single key, but was given a key array of shape {shape}"
    )


@DEFAULTS.clause("rank.random-key.raw", expect=outcomes(shuffled, keys, several_keys(r"\(1, 2\)")))
def raw_key(impl: Implementation, cluster: Cluster) -> None:
    """One raw key per device, with which `jax.random.permutation` shuffles eight numbers."""
    move(impl, cluster, lambda key: jax.random.permutation(key, CARDS), shuffled, keys)


@DEFAULTS.clause("rank.random-key.typed", expect=outcomes(shuffled, keys, several_keys(r"\(1,\)")))
def typed_key(impl: Implementation, cluster: Cluster) -> None:
    """The same with a typed key, made in the body with `jax.random.wrap_key_data`."""

    def body(key: Any) -> Any:
        return jax.random.permutation(jax.random.wrap_key_data(key), CARDS)

    move(impl, cluster, body, shuffled, keys)
