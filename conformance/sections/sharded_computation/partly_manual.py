"""shard_map with `axis_names=`: over some axes of the mesh, while the compiler splits the others.

pmap has no such form. Where a program is over a grid of devices, the remedies of nested pmap lead
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType
from numpy.typing import NDArray

from conformance.sections.sharded_computation import COUNT, P, sharding
from conformance.spec.clause import devices
from conformance.spec.columns import of_shard_map
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Grid = NDArray[Any]

CLAIM = "pmap-silence.partly-manual-maps"
NO_FORM = "a pmap is over one axis"
LEFT_OUT = "the result does not depend on the number of processes"
ROWS, COLUMNS = 2, 4  # devices along the axes i and j
SHAPE = (8, 4)
FACTORS = np.array([1, 2, 3, 4], np.float32)

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def grid() -> Grid:
    """Return the mapped argument."""
    return np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)


def halves(x: Grid) -> Grid:
    """The parts along i."""
    return x.reshape(ROWS, -1, SHAPE[1])


@dataclass(frozen=True, slots=True)
class Form:
    """A body over the axis i of a grid of devices, and what NumPy makes of the whole array.

    `kinds` are those of the mesh's axes; `placed` are the axes along which the argument is put
    first; `error` is what JAX raises where the form is wrong.
    """

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Callable[[Grid], Any]
    out: tuple[Any, ...] = ("i",)
    options: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[AxisType, AxisType] = (AUTO, AUTO)
    placed: tuple[str | None, ...] | None = None
    jitted: bool = True
    whole: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] = lambda function: function
    error: Expectation | None = None

    def expected(self) -> Expectation:
        """The model's values, or the error."""
        if self.error is not None:
            return self.error

        def model(place: Place) -> Any:
            return self.model(grid())

        return twice(returns(model, text=f"what NumPy gives for {self.text}"))


def wrong(error: type[Exception], pattern: str) -> Expectation:
    """An error in both calls."""
    return twice(raises(error, pattern))


def _psum(x: Any) -> Any:
    return lax.psum(x, "i")


def _sum(x: Grid) -> Grid:
    result: Grid = halves(x).sum(0)
    return result


def _derived(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    gradient: Callable[[Any], Any] = jax.grad(lambda x: (function(x) ** 2).sum())
    return gradient


FORMS: Mapping[str, Form] = table(
    Form("psum", "a psum over the named axis", _psum, _sum, ()),
    Form("without-jit", "a psum over the named axis, without jit", _psum, _sum, (), jitted=False),
    Form(
        "local-shape",
        "the shape in the body, which has half of the rows and all columns",
        lambda x: x * x.shape[0] + x.shape[1],
        lambda x: x * 4 + 4,
    ),
    Form(
        "axis-index",
        "axis_index",
        lambda x: x + lax.axis_index("i"),
        lambda x: x + np.repeat(np.arange(ROWS, dtype=np.float32), 4)[:, None],
    ),
    Form(
        "ppermute",
        "ppermute",
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]),
        lambda x: halves(x)[::-1].reshape(SHAPE),
    ),
    Form(
        "all-gather",
        "all_gather",
        lambda x: lax.all_gather(x, "i")[None],
        lambda x: np.stack([halves(x)] * ROWS),
    ),
    Form(
        "psum-scatter",
        "psum_scatter",
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        _sum,
    ),
    Form(
        "product",
        "a product over the sharded dimension",
        lambda x: lax.psum(x.T @ x, "i"),
        lambda x: x.T @ x,
        (),
    ),
    Form(
        "grad",
        "grad of a psum",
        _psum,
        lambda x: 2 * np.tile(_sum(x), (ROWS, 1)),
        (),
        whole=_derived,
    ),
    Form(
        "constraint",
        "with_sharding_constraint over the other axis in the body",
        lambda x: lax.with_sharding_constraint(x * 2, P(None, "j")),
        lambda x: x * 2,
    ),
    Form(
        "split-by-both",
        "an argument that is sharded along both axes",
        lambda x: x * 2,
        lambda x: x * 2,
        placed=("i", "j"),
    ),
    Form(
        "explicit",
        "a psum, both axes Explicit, of an argument that is sharded along the named one",
        _psum,
        _sum,
        (),
        kinds=(EXPLICIT, EXPLICIT),
        placed=("i",),
    ),
    Form(
        "explicit-from-numpy",
        "a psum, both axes Explicit, of a NumPy array",
        _psum,
        _sum,
        (),
        kinds=(EXPLICIT, EXPLICIT),
    ),
    Form(
        "explicit-looped",
        "a lax.map of a product with a constant, both axes Explicit and manual",
        lambda x: lax.map(lambda row: (row * FACTORS).sum(keepdims=True), x),
        lambda x: (x * FACTORS).sum(1, keepdims=True),
        kinds=(EXPLICIT, EXPLICIT),
        placed=("i",),
        options={"axis_names": {"i", "j"}},
    ),
    Form("mixed", "a psum, the other axis Explicit", _psum, _sum, (), kinds=(AUTO, EXPLICIT)),
    Form(
        "spec-of-other-axis",
        "in_specs with the other axis",
        lambda x: x,
        lambda x: x,
        options={"in_specs": P("i", "j")},
        error=wrong(
            ValueError, "^shard_map in_specs argument must refer to an axis marked as manual"
        ),
    ),
    Form(
        "unknown-axis",
        "axis_names with an axis that the mesh does not have",
        lambda x: x,
        lambda x: x,
        options={"axis_names": {"k"}},
        error=wrong(ValueError, r"axis_names=frozenset\(\{'k'\}\) to be a subset of"),
    ),
    Form(
        "sum-over-other-axis",
        "a psum over the other axis",
        lambda x: lax.psum(x, "j"),
        lambda x: x,
        error=by_release(
            "0.8.2",
            before=wrong(ValueError, "^Axes mentioned in `vma` field .*type `Manual`"),
            since=wrong(NameError, "^Found an unbound axis name: j"),
        ),
    ),
)


@family(
    "sharded_computation.partly-manual.{form}",
    form=FORMS,
    claim=CLAIM,
    title="A shard_map over one of two mesh axes: {form.text}.",
    fact=lambda form: f"sharded_computation.partly-manual.{'refused' if form.error else 'taken'}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda form: of_shard_map(form.expected(), NO_FORM),
)
def partly_manual(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A shard_map over the axis i of a mesh of i and j."""
    mesh = jax.make_mesh((ROWS, COLUMNS), ("i", "j"), axis_types=form.kinds)
    options = {"in_specs": P("i"), "axis_names": {"i"}, **form.options}
    function = form.whole(
        jax.shard_map(lambda x: form.body(x), mesh=mesh, out_specs=P(*form.out), **options)
    )
    adopted = (
        impl.adopt(jax.jit(function), "jit(shard_map)") if form.jitted else impl.adopt(function)
    )
    array = grid()
    cluster.twice(
        adopted,
        array if form.placed is None else jax.device_put(array, sharding(mesh, *form.placed)),
    )
