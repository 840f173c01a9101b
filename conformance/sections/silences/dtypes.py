"""Every dtype of JAX in a mapped function: returned, sent to another device, unmapped, and
summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.answers import CONTROLLED, ONE_PROCESS_ALONE, WIDTH, control
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(claim="pmap-silence.dtypes", left_out=ONE_PROCESS_ALONE)


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype by its name in jax.numpy; `becomes` is what it is without x64.

    Its rows are the bits of their numbers, plus `least`; `total` is the dtype of a sum, empty where
    no sum of theirs is exact, or where the CPU has none.
    """

    key: str
    becomes: str = ""
    total: str = "own"
    least: int = 0

    @property
    def name(self) -> str:
        """Return the name in jax.numpy."""
        return self.key.replace("-", "_")

    def argument_dtype(self) -> Any:
        """The dtype of the argument."""
        name = {"bool": "bool_"}.get(self.name, self.name)
        return np.dtype(getattr(jax.numpy, name))

    def kept(self) -> Any:
        """The dtype of a result."""
        return np.dtype(self.becomes) if self.becomes else self.argument_dtype()

    def rows(self, place: Place) -> Any:
        """The bits of each row's number, in the argument's dtype."""
        return (self.bits(place) + self.least).astype(self.argument_dtype())

    def bits(self, place: Place) -> Any:
        """The bits of each row's number."""
        index = np.arange(place.topology.devices)[:, None]
        return (index >> np.arange(WIDTH)) & 1


DTYPES: Mapping[str, Dtype] = table(
    Dtype("bool", total="int32"),
    Dtype("int8"),
    Dtype("int16"),
    Dtype("int32"),
    Dtype("int64", becomes="int32"),
    Dtype("uint8"),
    Dtype("uint16"),
    Dtype("uint32"),
    Dtype("uint64", becomes="uint32"),
    Dtype("float16"),
    Dtype("bfloat16"),
    Dtype("float32"),
    Dtype("float64", becomes="float32"),
    Dtype("complex64"),
    Dtype("complex128", becomes="complex64"),
    Dtype("int2", total=""),
    Dtype("uint2", total=""),
    Dtype("int4"),
    Dtype("uint4"),
    Dtype("float4-e2m1fn"),
    Dtype("float8-e3m4"),
    Dtype("float8-e4m3"),
    Dtype("float8-e4m3fn"),
    Dtype("float8-e4m3fnuz"),
    Dtype("float8-e4m3b11fnuz"),
    Dtype("float8-e5m2"),
    Dtype("float8-e5m2fnuz"),
    Dtype("float8-e8m0fnu", total="", least=1),  # powers of two alone
)


def through(dtype: Dtype) -> Any:
    """Return the model of each row, the row before it, and the unmapped second row."""

    @described("each row, the one before it, and the second row whole")
    def model(place: Place) -> Any:
        kept = dtype.rows(place).astype(dtype.kept())
        return [kept, np.roll(kept, 1, axis=0), np.broadcast_to(kept[1], kept.shape)]

    return model


@DEFAULTS.family(
    "silences.dtype.{dtype}",
    dtype=DTYPES,
    title=lambda dtype: f"{dtype.name} is returned unchanged by a mapped identity.",
    fact="silences.dtype.kept",
    needs=devices(8),
    expect=lambda dtype: everywhere(in_steps(returns(through(dtype)), *TWICE)),
)
def kept(impl: Implementation, cluster: Cluster, dtype: Dtype) -> None:
    """Return rows of a dtype unchanged, send them to the next device, and pass them unmapped."""
    around = [(i, (i + 1) % 8) for i in range(8)]

    def body(x: Any, y: Any) -> Any:
        return [x, jax.lax.ppermute(x, "i", around), y]

    rows = dtype.rows(cluster)
    cluster.twice(impl.map(body, in_axes=(0, None)), rows, rows[1])


def added_up(dtype: Dtype) -> Any:
    """The sum of the rows, in each of them."""

    @described("the sum of all rows")
    def model(place: Place) -> Any:
        kind = dtype.kept() if dtype.total == "own" else np.dtype(dtype.total)
        bits = dtype.bits(place)
        return np.broadcast_to(bits.sum(0), bits.shape).astype(kind)

    return model


@DEFAULTS.family(
    "silences.dtype.sum-{dtype}",
    dtype={key: one for key, one in DTYPES.items() if one.total},
    title=lambda dtype: f"A psum of {dtype.name} has the same dtype as under legacy pmap.",
    fact="silences.dtype.sum",
    expect=lambda dtype: everywhere(in_steps(returns(added_up(dtype)), *TWICE)),
)
def summed(impl: Implementation, cluster: Cluster, dtype: Dtype) -> None:
    """A psum of rows of a dtype, each of which is 0 or 1."""
    cluster.twice(impl.map(lambda x: jax.lax.psum(x, "i")), dtype.rows(cluster))


# --- The other collectives in half precision ------------------------------------------------------

HALVES: Mapping[str, Dtype] = {key: DTYPES[key] for key in ("float16", "bfloat16")}


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of a body's row, and its result in each row, of all rows."""

    key: str
    text: str
    apply: Callable[[Any], Any]
    model: Callable[[NDArray[Any]], NDArray[Any]]


COLLECTIVES: Mapping[str, Collective] = table(
    Collective(
        "mean",
        "`pmean`",
        lambda x: jax.lax.pmean(x, "i"),
        lambda rows: np.broadcast_to(rows.mean(0), rows.shape),
    ),
    Collective(
        "max",
        "`pmax`",
        lambda x: jax.lax.pmax(x, "i"),
        lambda rows: np.broadcast_to(rows.max(0), rows.shape),
    ),
    Collective(
        "min",
        "`pmin`",
        lambda x: jax.lax.pmin(x, "i"),
        lambda rows: np.broadcast_to(rows.min(0), rows.shape),
    ),
    Collective(
        "gathered",
        "`all_gather`",
        lambda x: jax.lax.all_gather(x, "i"),
        lambda rows: np.broadcast_to(rows, (len(rows), *rows.shape)),
    ),
    Collective(
        "scattered",
        "`psum_scatter`",
        lambda x: jax.lax.psum_scatter(jax.numpy.resize(x, (8,)), "i"),
        lambda rows: np.resize(rows.sum(0), 8),
    ),
    Collective(
        "exchanged",
        "`all_to_all`",
        lambda x: jax.lax.all_to_all(jax.numpy.resize(x, (8,)), "i", 0, 0),
        lambda rows: np.stack([np.resize(row, 8) for row in rows]).T,
    ),
    Collective(
        "weighted",
        "`psum` of the row times a Python number",
        lambda x: jax.lax.psum(x * 2.0, "i"),
        lambda rows: np.broadcast_to(rows.sum(0) * 2, rows.shape),
    ),
)


def collected(collective: Collective, dtype: Dtype) -> Any:
    """Return the model of a collective in a dtype."""

    @described(f"what NumPy gives for {collective.text}, in {dtype.name}")
    def model(place: Place) -> Any:
        return collective.model(dtype.bits(place).astype(np.float64)).astype(dtype.kept())

    return model


@DEFAULTS.family(
    "silences.dtype.{collective}-{dtype}",
    collective=COLLECTIVES,
    dtype=HALVES,
    title=lambda collective, dtype: (
        f"{collective.text} of {dtype.name} has the same dtype as under legacy pmap."
    ),
    fact="silences.dtype.half-precision",
    needs=devices(8),
    expect=lambda collective, dtype: everywhere(
        in_steps(returns(collected(collective, dtype)), *TWICE)
    ),
)
def in_half_precision(
    impl: Implementation, cluster: Cluster, collective: Collective, dtype: Dtype
) -> None:
    """A collective of rows in half precision, each of whose numbers is 0 or 1."""
    cluster.twice(impl.map(lambda x: collective.apply(x)), dtype.rows(cluster))


# --- Numbers at the limits of a dtype: a reduction in another dtype would lose them ---------------

REDUCED = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32")


def extremes(dtype: Dtype) -> NDArray[Any]:
    """Rows of a dtype's limits, of which no sum is rounded; those of integers wrap."""
    kind = dtype.kept()
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.array([[limits.min, limits.max], [limits.max, limits.max - 1]] * 4, kind)
    about = jax.numpy.finfo(kind)
    large, tiny = 2.0 ** (about.maxexp - 5), float(about.smallest_normal)
    rows = np.tile([large, tiny, 0.0], (8, 1))
    rows[3, 2] = 1 + float(about.eps)
    return rows.astype(kind)


def reduced(dtype: Dtype) -> Any:
    """The model of `of_extremes`."""

    @described("the largest, the least and the sum of all rows, and that sum less 1")
    def model(place: Place) -> Any:
        rows = extremes(dtype)
        exact = rows.astype(np.int64 if rows.dtype.kind in "iu" else np.float64)
        total = exact.sum(0)
        found = (exact.max(0), exact.min(0), total, total - 1)
        return [np.broadcast_to(one, rows.shape).astype(rows.dtype) for one in found]

    return model


@DEFAULTS.family(
    "silences.dtype.extremes-{dtype}",
    dtype={key: DTYPES[key] for key in REDUCED},
    title=lambda dtype: f"pmax, pmin and psum of the largest and least {dtype.name} are exact.",
    needs=devices(8),
    expect=lambda dtype: everywhere(in_steps(returns(reduced(dtype)), *TWICE)),
)
def of_extremes(impl: Implementation, cluster: Cluster, dtype: Dtype) -> None:
    """Reduce rows of a dtype's limits. Less 1, a sum shows its last bit within any tolerance."""

    def body(x: Any) -> Any:
        total = jax.lax.psum(x, "i")
        return [jax.lax.pmax(x, "i"), jax.lax.pmin(x, "i"), total, total - 1]

    cluster.twice(impl.map(body), extremes(dtype))


# --- float0, the dtype of a gradient by integers --------------------------------------------------

FLOAT0 = jax.dtypes.float0


def is_float0(array: Any) -> Any:
    """Return whether the array is of dtype float0, and its shape: it has no other content."""
    return [np.array(array.dtype == FLOAT0), np.array(array.shape, np.int32)]


@described("float0 of the rows' shape, and the rows doubled")
def of_rows(place: Place) -> Any:
    return [
        np.array(True),
        np.array([place.topology.devices_per_process, WIDTH], np.int32),
        place.rows(WIDTH) * 2,
    ]


@DEFAULTS.clause(
    "silences.dtype.float0-returned",
    fact="silences.dtype.float0",
    needs=devices(2),
    topologies=("1x8", "2x2"),
    left_out="two processes show what several do",
    expect=of_pmaps(
        every(CONTROLLED, in_steps(returns(of_rows), *TWICE)),
        "what a jit of its body makes of float0, it makes without a map",
    ),
)
def float0_returned(impl: Implementation, cluster: Cluster) -> None:
    """The gradient with respect to an integer argument, taken in the body, has dtype float0."""
    control(impl, cluster)
    gradient = jax.grad(lambda x, n: (x * n).sum(), argnums=1, allow_int=True)
    # float0 is in no jax.Array, by which a call would be proven: the control's is.
    function = impl.map(lambda x, n: (gradient(x, n), x * 2)).function
    whole = cluster.rows(WIDTH, dtype=np.int32)

    def call() -> Any:
        by_integers, rows = function(cluster.rows(WIDTH), whole)
        return [*is_float0(by_integers), rows]

    cluster.twice(call)


@described("the integers of this process's rows")
def integers(place: Place) -> Any:
    return place.rows(WIDTH, dtype=np.int32).astype(np.float32)


@DEFAULTS.clause(
    "silences.fix.float0-left-out",
    title="A map of a gradient by a float and an integer argument that returns the float's alone.",
    fixes="silences.dtype.float0-returned",
    needs=devices(2),
    topologies=("1x8", "2x2"),
    left_out="two processes show what several do",
    expect=everywhere(in_steps(returns(integers), *TWICE)),
)
def float0_left_out(impl: Implementation, cluster: Cluster) -> None:
    """The gradient with respect to an integer argument stays in the body."""
    gradients = jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)
    function = impl.map(lambda x, n: gradients(x, n)[0])
    given = [impl.given(cluster.rows(WIDTH, dtype=kind)) for kind in (np.float32, np.int32)]
    cluster.twice(function, *given)


@DEFAULTS.clause(
    "silences.dtype.float0-passed",
    fact="silences.dtype.float0",
    needs=devices(8),
    expect=everywhere(in_steps(returns(lambda place: place.rows(WIDTH) * 2), *TWICE)),
)
def float0_passed(impl: Implementation, cluster: Cluster) -> None:
    """An argument of dtype float0 is accepted."""
    nothing = np.zeros((8, WIDTH), FLOAT0)
    cluster.twice(impl.map(lambda x, y: x * 2), cluster.rows(WIDTH), nothing)
