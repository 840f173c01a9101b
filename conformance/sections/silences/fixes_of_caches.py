"""Fixes that known issues name: caches cleared between two uses of one function."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.sections.silences.fixing import DEFAULTS, WIDTH, Rows
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.expectation import every, noted, raises, returns, steps, twice
from conformance.spec.family import table
from conformance.worker.bodies import double, doubled
from conformance.worker.compiling import compilations
from conformance.worker.protocols import Cluster, Implementation, Mapped

TRANSFORMS = "pmap-silence.transforms-of-the-map"


@dataclass(frozen=True, slots=True)
class Between:
    """Two uses of a mapped function that doubles, of which the second fails without clearing."""

    key: str
    text: str
    fixes: str | None
    claim: str
    first: Callable[[Mapped, Rows], Any]
    second: Callable[[Mapped, Rows], Any]
    second_shape: tuple[int, ...] = (WIDTH,)


def plainly(function: Mapped, rows: Rows) -> Any:
    """A call."""
    return function(rows)


def without_jit(function: Mapped, rows: Rows) -> Any:
    """A call with jit disabled."""
    with jax.disable_jit():
        return function(rows)


BETWEEN: Mapping[str, Between] = table(
    Between(
        "another-shape",
        "a call with rows of another shape",
        "silences.retraces.shapes",
        "pmap-silence.retraces",
        plainly,
        plainly,
        (WIDTH + 1,),
    ),
    Between(
        "jit-disabled",
        "another call with jit disabled",
        "silences.debugging.disable-jit.double",
        "pmap-silence.debugging",
        without_jit,
        without_jit,
    ),
    Between(
        "lowering",
        "lower(), compile() and a call of the compiled stage",
        None,
        "pmap-silence.lowered-one-process",
        plainly,
        lambda function, rows: jax.tree.leaves(function.lower(rows).compile()(rows))[0],
    ),
    Between(
        "jit",
        "a call under jit",
        None,
        TRANSFORMS,
        plainly,
        lambda function, rows: jax.jit(lambda x: function(x))(rows),
    ),
    Between(
        "gradient-under-jit",
        "a gradient under jit, after one without",
        None,
        "pmap-silence.gradient-outside-the-map",
        lambda function, rows: jax.grad(lambda x: function(x).sum())(rows) * rows,
        lambda function, rows: jax.jit(jax.grad(lambda x: function(x).sum()))(rows) * rows,
    ),
)


@DEFAULTS.family(
    "silences.fix.cleared-before-{between}",
    between=BETWEEN,
    title="jax.clear_caches() between a use of a mapped function and {between.text}.",
    expect=lambda between: everywhere(
        steps(
            first_use=returns(doubled(WIDTH)),
            second_use=returns(doubled(*between.second_shape)),
        )
    ),
)
def cleared(impl: Implementation, cluster: Cluster, between: Between) -> None:
    """Two uses of one mapped function, with cleared caches between them."""
    function = impl.map(double())
    cluster.step("first use", between.first, function, cluster.rows(WIDTH))
    jax.clear_caches()
    cluster.step("second use", between.second, function, cluster.rows(*between.second_shape))


@dataclass(frozen=True, slots=True)
class Mended:
    """What makes a function usable again whose first call failed: `again` maps its body."""

    key: str
    text: str
    again: Callable[[Implementation, Mapped, Callable[[Any], Any]], Callable[[Any], Any]]


def with_cleared_caches(
    impl: Implementation, function: Mapped, body: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """The same wrapper, after jax.clear_caches()."""
    jax.clear_caches()
    return function


MENDED: Mapping[str, Mended] = table(
    Mended("cleared", "jax.clear_caches()", with_cleared_caches),
    Mended(
        "new-function",
        "a map of `lambda x: f(x)`",
        lambda impl, function, body: impl.map(lambda x: body(x)),
    ),
)


@DEFAULTS.family(
    "silences.fix.failed-trace.{mended}",
    mended=MENDED,
    claim="pmap-silence.debugging",
    title="After its body raised once, a mapped function works by {mended.text}.",
    fixes="silences.debugging.disable-jit.number",
    expect=everywhere(
        steps(
            failing=raises(RuntimeError, "^not ready$", phase="trace"),
            again=returns(doubled(WIDTH)),
        )
    ),
)
def failed_trace(impl: Implementation, cluster: Cluster, mended: Mended) -> None:
    """A body that raises in its first trace only."""
    ready: list[bool] = []

    def body(x: Any) -> Any:
        if not ready:
            raise RuntimeError("not ready")
        return x * 2

    function, rows = impl.map(body), cluster.rows(WIDTH)
    cluster.step("failing", function, rows)
    ready.append(True)
    cluster.step("again", mended.again(impl, function, body), rows)


AGAIN = "compiled again"
NOTHING_AGAIN = every(
    twice(returns(doubled(WIDTH))),
    steps(second_call=noted(AGAIN, "compiles nothing", lambda _, seen: seen == 0)),
)


def call_twice(cluster: Cluster, function: Callable[[Any], Any]) -> None:
    """Two calls, and how many programs the second compiled."""
    made = compilations()
    cluster.step("first call", function, cluster.rows(WIDTH))
    before = len(made)
    cluster.step("second call", function, cluster.rows(WIDTH))
    cluster.note(AGAIN, len(made) - before)


@DEFAULTS.clause(
    "silences.fix.checkpointed-once",
    claim="pmap-silence.retraces",
    title="A mapped function in one jax.checkpoint, made before the calls, compiles once.",
    expect=everywhere(NOTHING_AGAIN),
)
def checkpointed_once(impl: Implementation, cluster: Cluster) -> None:
    """Two calls of one checkpointed function around a map."""
    function = impl.map(double())
    call_twice(cluster, jax.checkpoint(lambda x: function(x)))


def pallas_doubled(x: Any) -> Any:
    """A row plus itself, by an interpreted Pallas kernel."""
    from jax.experimental import pallas

    def kernel(row: Any, out: Any) -> None:
        out[...] = row[...] + row[...]

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(kernel, out_shape=shape, interpret=True)(x)


@DEFAULTS.clause(
    "silences.fix.pallas-tpu-imported",
    claim="pmap-silence.foreign-code",
    title="After an import of jax.experimental.pallas.tpu, the first Pallas program of a process "
    "compiles once.",
    fresh=True,
    requires=("absl-py",),  # up to JAX 0.11.1 that import needs it
    expect=of_pmaps(NOTHING_AGAIN, "shard_map refuses an interpreted kernel under check_vma"),
)
def pallas_imported(impl: Implementation, cluster: Cluster) -> None:
    """Two calls of a map of a Pallas kernel."""
    importlib.import_module("jax.experimental.pallas.tpu")
    call_twice(cluster, impl.map(pallas_doubled))
