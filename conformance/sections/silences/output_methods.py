"""An output as an array: slices, other shapes, iteration, `.at[]` updates.

The values are tested here, for sizes that divide evenly among the devices and sizes that do not.
Communication of such an access is tested by indexing.access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.spec.arrays import returns_array
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

Rows = NDArray[Any]
Use = Callable[[Any], Any]

COUNT = 8  # devices
WIDTH = 3  # of a row
SLICING = "pmap-silence.output-slicing"
ITERATING = "pmap-silence.output-iteration"
UPDATING = "pmap-silence.output-updates"

DEFAULTS = Defaults(
    needs=devices(COUNT),
    left_out="errors.indexing and indexing.access test outputs in several processes",
)


@dataclass(frozen=True, slots=True)
class Form:
    """A `use` of the output, and of the same rows in NumPy the `model` (else the use itself)."""

    key: str
    text: str
    use: Use
    model: Use | None = None

    @described("what NumPy makes of the rows")
    def by_numpy(self, place: Place) -> Any:
        return (self.model or self.use)(place.all_rows(WIDTH) * 2)


SLICES: Mapping[str, Form] = table(
    Form("half", "`x[:4]`", lambda x: x[:4]),
    Form("second-half", "`x[4:]`", lambda x: x[4:]),
    Form("middle", "`x[2:5]`", lambda x: x[2:5]),
    Form("backwards", "`x[::-1]`", lambda x: x[::-1]),
    Form("stride", "`x[1::3]`", lambda x: x[1::3]),
    Form("none", "`x[2:2]`", lambda x: x[2:2]),
    Form("beyond", "`x[7:20]`", lambda x: x[7:20]),
    Form("index-beyond", "`x[9]` is the last row", lambda x: x[9], lambda a: a[-1]),
    Form("columns", "`x[:, 1:]`", lambda x: x[:, 1:]),
    Form("new-axis", "`x[:, None]`", lambda x: x[:, None]),
    Form("new-leading", "`x[None]`", lambda x: x[None]),
    Form("two-arrays", "`x[[7, 0], [1, 2]]`", lambda x: x[np.array([7, 0]), np.array([1, 2])]),
    Form("reshape-split", "`x.reshape(2, 4, 3)`", lambda x: x.reshape(2, 4, 3)),
    Form("reshape-joined", "`x.reshape(4, 6)`", lambda x: x.reshape(4, 6)),
    Form("reshape-uneven", "`x.reshape(3, 8)`", lambda x: x.reshape(3, 8)),
    Form("reshape-column", "`x.reshape(24, 1)`", lambda x: x.reshape(24, 1)),
    Form("reshape-coarser", "`x.reshape(12, 2)`", lambda x: x.reshape(12, 2)),
    Form("ravel", "`x.ravel()`", lambda x: x.ravel()),
    Form("transpose", "`x.T`", lambda x: x.T),
    Form("split-rows", "`jnp.split(x, 8)`", lambda x: jnp.split(x, 8), lambda a: np.split(a, 8)),
    Form("split-halves", "`jnp.split(x, 2)`", lambda x: jnp.split(x, 2), lambda a: np.split(a, 2)),
    Form(
        "split-at",
        "`jnp.split(x, [3, 5])`",
        lambda x: jnp.split(x, [3, 5]),
        lambda a: np.split(a, [3, 5]),
    ),
    Form(
        "split-columns",
        "`jnp.split(x, 3, 1)`",
        lambda x: jnp.split(x, 3, 1),
        lambda a: np.split(a, 3, 1),
    ),
    Form(
        "array-split",
        "`jnp.array_split(x, 3)`",
        lambda x: jnp.array_split(x, 3),
        lambda a: np.array_split(a, 3),
    ),
    Form(
        "lax-split",
        "`jax.lax.split(x, (2, 6))`",
        lambda x: jax.lax.split(x, (2, 6)),
        lambda a: [a[:2], a[2:]],
    ),
    Form("roll", "`jnp.roll(x, 1, 0)`", lambda x: jnp.roll(x, 1, 0), lambda a: np.roll(a, 1, 0)),
    Form("repeat", "`x.repeat(2, 0)`", lambda x: x.repeat(2, 0)),
    Form(
        "tile", "`jnp.tile(x, (2, 1))`", lambda x: jnp.tile(x, (2, 1)), lambda a: np.tile(a, (2, 1))
    ),
    Form(
        "pad",
        "`jnp.pad(x, ((1, 0), (0, 0)))`",
        lambda x: jnp.pad(x, ((1, 0), (0, 0))),
        lambda a: np.pad(a, ((1, 0), (0, 0))),
    ),
    Form("cumsum", "`x.cumsum(0)`", lambda x: x.cumsum(0)),
    Form(
        "diff", "`jnp.diff(x, axis=0)`", lambda x: jnp.diff(x, axis=0), lambda a: np.diff(a, axis=0)
    ),
    Form("sort", "`jnp.sort(-x, 0)`", lambda x: jnp.sort(-x, 0), lambda a: np.sort(-a, 0)),
)

ITERATIONS: Mapping[str, Form] = table(
    Form("next", "`next(iter(x))`", lambda x: next(iter(x))),
    Form("star", "`first, *rest = x`", lambda x: [*x][1:]),
    Form(
        "zip", "`a + b for a, b in zip(x, x)`", lambda x: [a + b for a, b in zip(x, x, strict=True)]
    ),
    Form(
        "zip-reversed",
        "`a - b for a, b in zip(x, reversed(x))`",
        lambda x: [a - b for a, b in zip(x, reversed(x), strict=True)],
        lambda a: [p - q for p, q in zip(a, a[::-1], strict=True)],
    ),
    Form(
        "enumerate",
        "`k * row for k, row in enumerate(x)`",
        lambda x: [np.float32(k) * row for k, row in enumerate(x)],
    ),
    Form("sum", "`sum(x)`", sum),
    Form(
        "nested",
        "`list(row) for row in x`",
        lambda x: [list(row) for row in x],
        lambda a: [list(row) for row in a],
    ),
    Form(
        "unstack-columns",
        "`jnp.unstack(x, axis=1)`",
        lambda x: jnp.unstack(x, axis=1),
        lambda a: tuple(a.T),
    ),
    Form(
        "unstack-reversed",
        "`jnp.unstack(x)[::-1]`",
        lambda x: jnp.unstack(x)[::-1],
        lambda a: tuple(a)[::-1],
    ),
    Form("of-transpose", "`list(x.T)`", lambda x: list(x.T)),
    Form("of-slice", "`list(x[2:5])`", lambda x: list(x[2:5])),
)


def changed(change: Callable[[Rows], object]) -> Use:
    """The rows after a change in place."""

    def model(rows: Rows) -> Rows:
        rows = rows.copy()
        change(rows)
        return rows

    return model


def put(index: Any, value: Any) -> Use:
    """The rows after `rows[index] = value`."""
    return changed(lambda rows: rows.__setitem__(index, value))


ONES = np.ones(WIDTH, np.float32)

UPDATES: Mapping[str, Form] = table(
    Form("set", "`x.at[0].set(5)`", lambda x: x.at[0].set(5), put(0, 5)),
    Form("set-last", "`x.at[-1].set(5)`", lambda x: x.at[-1].set(5), put(-1, 5)),
    Form("set-slice", "`x.at[2:4].set(0)`", lambda x: x.at[2:4].set(0), put(slice(2, 4), 0)),
    Form(
        "set-column", "`x.at[:, 0].set(0)`", lambda x: x.at[:, 0].set(0), put((slice(None), 0), 0)
    ),
    Form("set-numpy", "`x.at[0].set(numpy)`", lambda x: x.at[0].set(ONES), put(0, ONES)),
    Form(
        "set-own-row",
        "`x.at[0].set(x[1])`",
        lambda x: x.at[0].set(x[1]),
        changed(lambda a: a.__setitem__(0, a[1])),
    ),
    Form(
        "set-mask",
        "`x.at[mask].set(0)`",
        lambda x: x.at[np.arange(COUNT) % 2 == 0].set(0),
        put(slice(None, None, 2), 0),
    ),
    Form(
        "set-beyond",
        "`x.at[20].set(5)` changes nothing",
        lambda x: x.at[20].set(5),
        lambda a: a,
    ),
    Form(
        "set-beyond-clipped",
        '`x.at[20].set(5, mode="clip")` changes the last row',
        lambda x: x.at[20].set(5, mode="clip"),
        put(-1, 5),
    ),
    Form(
        "set-jax-index",
        "`x.at[jnp.int32(2)].set(0)`",
        lambda x: x.at[jnp.int32(2)].set(0),
        put(2, 0),
    ),
    Form(
        "set-traced",
        "`x.at[i].set(0)` under jit",
        lambda x: jax.jit(lambda y, i: y.at[i].set(0))(x, 2),
        put(2, 0),
    ),
    Form("add", "`x.at[3].add(1)`", lambda x: x.at[3].add(1), changed(lambda a: a[3].__iadd__(1))),
    Form(
        "add-twice-there",
        "`x.at[[1, 1]].add(1)` adds twice",
        lambda x: x.at[np.array([1, 1])].add(1),
        changed(lambda a: a[1].__iadd__(2)),
    ),
    Form("add-all", "`x.at[...].add(1)`", lambda x: x.at[...].add(1), lambda a: a + 1),
    Form(
        "multiply",
        "`x.at[1].multiply(10)`",
        lambda x: x.at[1].multiply(10),
        changed(lambda a: a[1].__imul__(10)),
    ),
    Form(
        "divide",
        "`x.at[1].divide(2)`",
        lambda x: x.at[1].divide(2),
        changed(lambda a: a[1].__itruediv__(2)),
    ),
    Form(
        "power",
        "`x.at[1].power(2)`",
        lambda x: x.at[1].power(2),
        changed(lambda a: a[1].__imul__(a[1].copy())),
    ),
    Form(
        "min",
        "`x.at[:2].min(3)`",
        lambda x: x.at[:2].min(3),
        changed(lambda a: np.minimum(a[:2], 3, out=a[:2])),
    ),
    Form(
        "max",
        "`x.at[:2].max(9)`",
        lambda x: x.at[:2].max(9),
        changed(lambda a: np.maximum(a[:2], 9, out=a[:2])),
    ),
    Form(
        "apply",
        "`x.at[0].apply(jnp.negative)`",
        lambda x: x.at[0].apply(jnp.negative),
        changed(lambda a: a[0].__imul__(-1)),
    ),
    Form(
        "get-beyond", "`x.at[20].get()` is the last row", lambda x: x.at[20].get(), lambda a: a[-1]
    ),
    Form(
        "get-beyond-filled",
        '`x.at[20].get(mode="fill", fill_value=-1)`',
        lambda x: x.at[20].get(mode="fill", fill_value=-1),
        lambda a: -ONES,
    ),
    Form(
        "get-clipped",
        '`x.at[2:4].get(mode="clip")`',
        lambda x: x.at[2:4].get(mode="clip"),
        lambda a: a[2:4],
    ),
)


@DEFAULTS.family(
    "silences.output.slice.{form}",
    form=SLICES,
    claim=SLICING,
    title="On a mapped function's output: {form.text}.",
    fact="silences.output.slice",
    expect=lambda form: everywhere(
        twice(returns_array(form.by_numpy, text=f"NumPy's {form.text}"))
    ),
)
@DEFAULTS.family(
    "silences.output.iterate.{form}",
    form=ITERATIONS,
    claim=ITERATING,
    title="On a mapped function's output: {form.text}.",
    fact="silences.output.iterate",
    expect=lambda form: everywhere(
        twice(returns_array(form.by_numpy, text=f"NumPy's {form.text}"))
    ),
)
@DEFAULTS.family(
    "silences.output.update.{form}",
    form=UPDATES,
    claim=UPDATING,
    title="On a mapped function's output: {form.text}.",
    fact="silences.output.update",
    expect=lambda form: everywhere(
        twice(returns_array(form.by_numpy, text=f"NumPy's {form.text}"))
    ),
)
def used(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """An output, used as any array is."""
    cluster.twice(form.use, impl.map(double())(cluster.rows(WIDTH)))


# --- Impossible uses -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """A use that no array has, and JAX's error."""

    key: str
    text: str
    use: Use
    error: type[Exception]
    pattern: str
    claim: str = SLICING


REFUSALS: Mapping[str, Refusal] = table(
    Refusal(
        "reshape",
        "`x.reshape(5, -1)`",
        lambda x: x.reshape(5, -1),
        TypeError,
        r"^cannot reshape array of shape \(8, 3\) \(size 24\) into shape \(5, -1\)",
    ),
    Refusal(
        "split",
        "`jnp.split(x, 3)`",
        lambda x: jnp.split(x, 3),
        ValueError,
        "^array split does not result in an equal division: rest is 2",
    ),
    Refusal(
        "assign",
        "`x[0] = 1`",
        lambda x: x.__setitem__(0, 1),
        TypeError,
        r"JAX arrays are immutable.*x = x\.at\[idx\]\.set\(y\)",
        UPDATING,
    ),
)


@DEFAULTS.family(
    "silences.output.refused.{refusal}",
    refusal=REFUSALS,
    claim="{refusal.claim}",
    title="On a mapped function's output, {refusal.text} is refused.",
    fact="silences.output.refused",
    expect=lambda refusal: everywhere(twice(raises(refusal.error, refusal.pattern))),
)
def refuse(impl: Implementation, cluster: Cluster, refusal: Refusal) -> None:
    """Use an output in a way that no array allows."""
    cluster.twice(refusal.use, impl.map(double())(cluster.rows(WIDTH)))
