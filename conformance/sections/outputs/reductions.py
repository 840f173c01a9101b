"""Sums and means of an output, outside jit and in it, and the guide's two fixes.

The guide calls only new pmap's silently wrong; legacy pmap and shard_map run the same programs and
must be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.outputs import WIDTH
from conformance.spec.arrays import returns_array, returns_host
from conformance.spec.aspects import RESULT
from conformance.spec.clause import clause, devices, processes
from conformance.spec.codes import Code, Problem
from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.combining import of_result
from conformance.spec.comparing import Model, against
from conformance.spec.expectation import OfEachStep, every, in_steps, raises, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap-2026-08."
ABOUT_PMAP = "the section is about pmap's outputs"
MATERIALIZE = "materialize"

Rows = Callable[[Place], Any]


def scored() -> Callable[[Any], Any]:
    """A row's values, which of them count, and a metric of it."""
    return lambda x: (x * 2, x % 2 == 1, x.sum())


def _scored(rows: Any) -> tuple[Any, ...]:
    return rows * 2, rows % 2 == 1, rows.sum(1)


@described("this process's values, which of them count, and metrics")
def own_scores(place: Place) -> Any:
    return _scored(place.rows(WIDTH))


@described("all processes' values, which of them count, and metrics")
def all_scores(place: Place) -> Any:
    return _scored(place.all_rows(WIDTH))


@dataclass(frozen=True, slots=True)
class Reduction:
    """One reduction of the values, which of them count, and the metrics, with NumPy's of it."""

    key: str
    text: str
    of: Callable[[Any, Any, Any], Any]
    numpy: Callable[[Any, Any, Any], Any]
    claim: str = f"{CLAIM}reductions-outside-jit"

    def model(self, scores: Rows, text: str) -> Model:
        """Return NumPy's result for such scores."""

        @described(f"NumPy's reduction of {text}")
        def model(place: Place) -> Any:
            return np.asarray(self.numpy(*scores(place)))

        return model

    def mistakes(self, scores: Rows) -> dict[str, Model]:
        """Return the wrong values that the guide reports."""
        zero = self.model(scores, "all")

        def of_one(place: Place) -> Any:
            return [one[:1] for one in scores(place)]

        def share(place: Place) -> Any:
            whole = zero(place)
            return (whole / place.topology.devices).astype(whole.dtype)

        return {
            "0": lambda place: np.zeros_like(zero(place)),
            "that of the first device": self.model(of_one, "the first device's row"),
            "divided by the number of devices": share,
        }

    def right(self, scores: Rows, text: str) -> OfEachStep:
        """Expect NumPy's result for all scores."""
        return returns_array(self.model(scores, text), mistakes=self.mistakes(scores))


REDUCTIONS: Mapping[str, Reduction] = table(
    Reduction("sum", "jnp.sum(x)", lambda x, m, t: jnp.sum(x), lambda x, m, t: x.sum()),
    Reduction("mean", "jnp.mean(x)", lambda x, m, t: jnp.mean(x), lambda x, m, t: x.mean()),
    Reduction(
        "masked-mean",
        "jnp.mean(x, where=mask)",
        lambda x, m, t: jnp.mean(x, where=m),
        lambda x, m, t: x[m].mean(),
    ),
    Reduction("rows", "jnp.sum(x, 0)", lambda x, m, t: jnp.sum(x, 0), lambda x, m, t: x.sum(0)),
    Reduction("method", "x.max()", lambda x, m, t: x.max(), lambda x, m, t: x.max()),
    Reduction(
        "count", "jnp.sum(mask)", lambda x, m, t: jnp.sum(m), lambda x, m, t: np.int32(m.sum())
    ),
    Reduction(
        "metrics",
        "jnp.mean(metrics)",
        lambda x, m, t: jnp.mean(t),
        lambda x, m, t: t.mean(),
        claim=f"{CLAIM}reductions-near-zero",
    ),
)


def silently_wrong(model: Model) -> Expectation:
    """Each call returns something else than the model's values, without an error."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if against(model, place, step) is None:
            return False, Problem(f"the right values: {step}", Code.NOTE)
        return True, str(step)

    return twice(of_result("returns other values than NumPy's", check_step, claims=RESULT))


def _outside_jit(reduction: Reduction) -> Columns:
    return {
        LEGACY_PMAP: twice(reduction.right(own_scores, "this process's rows")),
        NEW_PMAP: silently_wrong(reduction.model(own_scores, "this process's rows")),
        SHARD_MAP: twice(reduction.right(all_scores, "all processes' rows")),
    }


@family(
    "outputs.reductions.outside-jit.{reduction}",
    reduction=REDUCTIONS,
    title="`{reduction.text}` of a mapped function's output, outside jit",
    fact="outputs.reductions.outside-jit",
    topologies=ONE_AND_SEVERAL,
    needs=devices(4),
    expect=_outside_jit,
)
def reduce_outside_jit(impl: Implementation, cluster: Cluster, reduction: Reduction) -> None:
    """Reduce an output outside jit."""
    scores = impl.map(scored())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(reduction.of, *scores)


# --- The remedy outside jit -----------------------------------------------------------------------


def as_written(scores: Any) -> Any:
    """The guide's remedy."""
    if jax.config.jax_pmap_shmap_merge:
        scores = jax.tree.map(np.asarray, scores)
    return scores


def without_asking(scores: Any) -> Any:
    """The guide's remedy, whichever pmap it is."""
    return jax.tree.map(np.asarray, scores)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to fetch an output to the host before it is reduced."""

    key: str
    text: str
    of: Callable[[Any], Any]
    legacy: Callable[[Model], Expectation]


REMEDIES: Mapping[str, Remedy] = table(
    Remedy("materialized", "`np.asarray` if new pmap is on", as_written, returns_array),
    Remedy("materialized-always", "`np.asarray` in any case", without_asking, returns_host),
)

REMEDIED = {key: REDUCTIONS[key] for key in ("sum", "masked-mean", "metrics")}


def _remedied(remedy: Remedy, reduction: Reduction) -> Columns:
    reduced = twice(reduction.right(own_scores, "this process's rows"))
    legacy = in_steps(remedy.legacy(own_scores), MATERIALIZE)
    new = in_steps(returns_host(own_scores), MATERIALIZE)
    return of_pmaps(every(new, reduced), ABOUT_PMAP) | {LEGACY_PMAP: every(legacy, reduced)}


@family(
    "outputs.reductions.{remedy}.{reduction}",
    remedy=REMEDIES,
    reduction=REMEDIED,
    claim=f"{CLAIM}fix-materialize-before-reducing",
    title="{remedy.text}, then `{reduction.text}` of a pmap's output, outside jit",
    fact="outputs.reductions.{remedy}",
    fixes="outputs.reductions.outside-jit.{reduction}",
    topologies=ONE_AND_SEVERAL,
    expect=_remedied,
)
def reduce_materialized(
    impl: Implementation, cluster: Cluster, remedy: Remedy, reduction: Reduction
) -> None:
    """Reduce an output after fetching it to the host."""
    scores = impl.map(scored())(cluster.rows(WIDTH))
    cluster.step(MATERIALIZE, remedy.of, scores)
    cluster.twice(lambda: reduction.of(*remedy.of(scores)))


# --- Under jit ------------------------------------------------------------------------------------


@described("this process's rows, doubled, in one long row")
def own_row(place: Place) -> Any:
    return place.rows(WIDTH).reshape(-1) * 2


@described("this process's part of all rows, doubled, in one long row")
def one_long_row(place: Place) -> Any:
    return own_row(place)


def _length(place: Place) -> tuple[int, ...]:
    return (place.topology.devices * WIDTH,)


RESHAPED = twice(returns_array(own_row))
REFUSED = twice(
    raises(NotImplementedError, "jit of multi-host pmap not implemented", phase="lower")
)
NEEDS_ASARRAY = {
    LEGACY_PMAP: RESHAPED,
    NEW_PMAP: silently_wrong(own_row),
    SHARD_MAP: twice(returns_array(one_long_row, _length)),
}


@clause(
    "outputs.reductions.reshape-under-jit",
    claim=f"{CLAIM}reshape-under-jit",
    left_out="outputs.reductions.reshape-under-jit.processes tests several processes",
    needs=devices(4),
    expect=NEEDS_ASARRAY,
)
@clause(
    "outputs.reductions.reshape-under-jit.processes",
    claim=f"{CLAIM}reshape-under-jit",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=NEEDS_ASARRAY | {LEGACY_PMAP: REFUSED},
)
def reshape_under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A jitted function calls a mapped function, and reshapes its output."""
    mapped = impl.map(double())
    cluster.twice(jax.jit(lambda x: jnp.reshape(mapped(x), [-1])), impl.given(cluster.rows(WIDTH)))


@clause(
    "outputs.reductions.asarray-under-jit",
    claim=f"{CLAIM}fix-asarray-under-jit",
    fixes="outputs.reductions.reshape-under-jit",
    left_out="outputs.reductions.asarray-under-jit.processes tests several processes",
    expect=of_pmaps(RESHAPED, ABOUT_PMAP),
)
@clause(
    "outputs.reductions.asarray-under-jit.processes",
    claim=f"{CLAIM}fix-asarray-under-jit",
    fixes="outputs.reductions.reshape-under-jit.processes",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_pmaps(RESHAPED, ABOUT_PMAP) | {LEGACY_PMAP: REFUSED},
)
def asarray_under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A jitted function calls a mapped function, and reshapes the `jnp.asarray` of its output."""
    mapped = impl.map(double())

    def training_step(x: Any) -> Any:
        scores = mapped(x)
        if jax.config.jax_pmap_shmap_merge:
            scores = jnp.asarray(scores)
        return jnp.reshape(scores, [-1])

    cluster.twice(jax.jit(training_step), cluster.rows(WIDTH))
