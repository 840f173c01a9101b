"""Fixes that known issues name: programs in place of those that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from conformance.sections.silences.fixing import COUNT, DEFAULTS, WIDTH, Rows
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.worker.bodies import double, psum
from conformance.worker.protocols import Cluster, Implementation, Mapped

lax = jax.lax

TRANSFORMS = "pmap-silence.transforms-of-the-map"


def replicated(impl: Implementation) -> NamedSharding:
    """All of an array on each device of the map."""
    return impl.sharding(axis=None)


def to_all(value: Rows) -> Rows:
    """The same on every device."""
    return np.broadcast_to(value, (COUNT, *value.shape))


@dataclass(frozen=True, slots=True)
class Instead:
    """A program in place of that of the clause `fixes`: `make` gives what is called with rows.

    `model` is NumPy's result for all rows, of this `shape`.
    """

    key: str
    title: str
    fixes: str | None
    claim: str
    make: Callable[[Implementation], Callable[[Any], Any]]
    model: Callable[[Rows], Any]
    shape: tuple[int, ...] = (WIDTH,)


SLICING = "pmap-silence.output-slicing"
VARYING = "pmap-silence.varying-and-equal-values"
WEAK = "pmap-silence.weak-types"


def of_output(impl: Implementation, use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A use of the doubled rows, as the map returns them."""
    function = impl.map(double())
    return lambda rows: use(function(rows))


def in_a_loop(start: Callable[[Any], Any]) -> Callable[[Implementation], Callable[[Any], Any]]:
    """A map of a loop that adds the row three times to what it starts from."""
    return lambda impl: impl.map(
        lambda x: lax.fori_loop(0, 3, lambda _, total: total + x, start(x))
    )


def by_keyword(impl: Implementation) -> Callable[[Any], Any]:
    """A wrapper that takes keywords."""
    mapped = impl.map(lambda x, y: 2 * x + y)
    wrapper: Callable[..., Any] = lambda x, y: mapped(x, y)  # noqa: E731  (as the page says it)
    return lambda rows: wrapper(y=rows, x=rows * 10)


def scanned(function: Mapped) -> Callable[[Any], Any]:
    """A scan, unrolled, that feeds a mapped function its own output once."""
    made: Callable[[Any], Any] = jax.jit(
        lambda x: lax.scan(lambda carry, _: (function(carry), None), x, None, 2, unroll=True)[0]
    )
    return made


INSTEAD: Mapping[str, Instead] = table(
    Instead(
        "vmap-inside",
        "jit of a map of vmap, in place of jit of vmap of a map.",
        "silences.of-map.jit-vmap",
        TRANSFORMS,
        lambda impl: jax.jit(impl.map(jax.vmap(psum()))),
        lambda rows: to_all(rows.sum(0)),
        (2, WIDTH),
    ),
    Instead(
        "jacfwd-inside",
        "A map of jacfwd, in place of jacfwd of a map.",
        "silences.of-map.jacfwd",
        TRANSFORMS,
        lambda impl: impl.map(jax.jacfwd(lambda x: x**3)),
        lambda rows: np.stack([np.diag(3 * row**2) for row in rows]),
    ),
    Instead(
        "hessian-inside",
        "A map of hessian, in place of hessian of a map.",
        "silences.of-map.hessian",
        TRANSFORMS,
        lambda impl: impl.map(jax.hessian(lambda x: (x**3).sum())),
        lambda rows: np.stack([np.diag(6 * row) for row in rows]),
    ),
    Instead(
        "unrolled-axis-index",
        "A scan with unroll=True around a map that calls axis_index.",
        None,
        "pmap-silence.transforms-span-processes",
        lambda impl: scanned(impl.map(lambda x: x + lax.axis_index("i"))),
        lambda rows: rows + 2 * np.arange(COUNT, dtype=np.float32)[:, None],
    ),
    Instead(
        "slice-to-replicated",
        "A jit that returns half of the rows, with out_shardings of P().",
        "silences.output.jit-slice.half",
        SLICING,
        lambda impl: of_output(impl, jax.jit(lambda y: y[:4], out_shardings=replicated(impl))),
        lambda rows: rows[:4] * 2,
    ),
    Instead(
        "take-half",
        "A jit that takes half of the rows by jnp.take.",
        "silences.output.jit-slice.half",
        SLICING,
        lambda impl: of_output(impl, jax.jit(lambda y: jnp.take(y, jnp.arange(4), axis=0))),
        lambda rows: rows[:4] * 2,
    ),
    Instead(
        "reshape-on-the-host",
        "`np.asarray(y).reshape(2, 4, 3)` of a map's output of eight rows.",
        "silences.output.slice.reshape-split",
        SLICING,
        lambda impl: of_output(impl, lambda y: np.asarray(y).reshape(2, 4, WIDTH)),
        lambda rows: (rows * 2).reshape(2, 4, WIDTH),
    ),
    Instead(
        "reshape-replicated",
        "A reshape of a map's output of eight rows to two, after device_put to P().",
        "silences.output.slice.reshape-split",
        SLICING,
        lambda impl: of_output(
            impl, lambda y: jax.device_put(y, replicated(impl)).reshape(2, 4, WIDTH)
        ),
        lambda rows: (rows * 2).reshape(2, 4, WIDTH),
    ),
    Instead(
        "empty-under-jit",
        "An output without elements, of a map under jit.",
        "silences.empty.mapped",
        "pmap-silence.zero-size-arrays",
        lambda impl: jax.jit(impl.map(lambda x: x[:0])),
        lambda rows: np.zeros((COUNT, 0), np.float32),
    ),
    Instead(
        "loop-from-zeros-like",
        "A loop that starts from jnp.zeros_like of its row, in place of a cast.",
        "silences.varying.fori.checked",
        VARYING,
        in_a_loop(jnp.zeros_like),
        lambda rows: rows * 3,
    ),
    Instead(
        "loop-plus-nothing",
        "A loop that starts from zeros plus `0 * x`, in place of a cast.",
        "silences.varying.fori.checked",
        VARYING,
        in_a_loop(lambda x: jnp.zeros(WIDTH) + 0 * x),
        lambda rows: rows * 3,
    ),
    Instead(
        "weak-factor-cast",
        "float16 times a weakly typed row that the body casts by `y.astype(x.dtype)`.",
        "silences.weak.rows-plus-half",
        WEAK,
        lambda impl: (
            lambda rows: impl.map(lambda x, y: x * y.astype(x.dtype))(
                rows.astype(np.float16), jnp.broadcast_to(2.0, (COUNT,))
            )
        ),
        lambda rows: (rows * 2).astype(np.float16),
        (),
    ),
    Instead(
        "strong-before-psum",
        "A psum of `y.astype(y.dtype)` of a Python number, times int8.",
        "silences.weak.psum-of-float",
        WEAK,
        lambda impl: (
            lambda rows: impl.map(
                lambda x, y: lax.psum(y.astype(y.dtype), "i") * x, in_axes=(0, None)
            )(rows.astype(np.int8), jnp.asarray(100))
        ),
        lambda rows: rows.astype(np.int32) * 800,
        (),
    ),
    Instead(
        "keywords-by-a-wrapper",
        "`lambda x, y: mapped(x, y)` takes keywords.",
        None,
        "pmap-silence.pytrees-and-keywords",
        by_keyword,
        lambda rows: rows * 21,
    ),
)


@DEFAULTS.family(
    "silences.fix.{instead}",
    instead=INSTEAD,
    expect=lambda instead: everywhere(
        twice(
            returns(
                lambda place: instead.model(place.all_rows(*instead.shape)),
                text="NumPy's values for the same rows",
            )
        )
    ),
)
def instead_called(impl: Implementation, cluster: Cluster, instead: Instead) -> None:
    """The program that a known issue's page gives."""
    cluster.twice(instead.make(impl), cluster.rows(*instead.shape))
