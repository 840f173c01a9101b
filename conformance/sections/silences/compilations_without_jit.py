"""Mapped functions under `jax.disable_jit()`: how many programs the second call compiles.

Legacy pmap compiles the operations of the body once, and one program more at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    AGAIN,
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    compiled,
    control,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.compiling import compilations
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.compilations-without-jit", needs=devices(2), left_out=ONE_PROCESS_ALONE
)


# The first count shows that JAX reports what it compiles; legacy pmap's second count is 1.
AS_LEGACY = every(
    in_steps(compiled("JAX compiles for the first call", lambda count: count > 0), TWICE[0]),
    in_steps(
        compiled("JAX compiles at most one program again", lambda count: count <= 1), TWICE[1]
    ),
)


def local(x: Any) -> Any:
    return (x * 2 + 1) * x


@described("each row, doubled, plus one, times the row")
def computed(place: Place) -> Any:
    rows = place.rows(WIDTH)
    return (rows * 2 + 1) * rows


def averaged(x: Any) -> Any:
    return jax.lax.pmean(x * 2, "i") + x


@described("each row, plus twice the mean of all rows")
def mean_added(place: Place) -> Any:
    return (place.rows(WIDTH) + place.all_rows(WIDTH).mean(0) * 2).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Case:
    """A body, and how it is called under `jax.disable_jit()`."""

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Model
    by_vmap: bool = False
    with_jit: bool = False
    fixes: str | None = None

    def columns(self) -> Columns:
        """Right results, and no more programs than under legacy pmap."""
        right = every(twice(returns(self.model)), AS_LEGACY)
        return everywhere(every(CONTROLLED, right) if self.by_vmap else right)


CASES: Mapping[str, Case] = table(
    Case("local", "a mapped function whose body computes", local, computed),
    Case("collective", "a mapped function whose body averages over devices", averaged, mean_added),
    Case(
        "vmap",
        "the body under `jax.vmap` with the same axis name",
        averaged,
        mean_added,
        by_vmap=True,
        fixes="silences.compilations-without-jit.collective",
    ),
    Case(
        "turned-on",
        "a mapped function called within `jax.disable_jit(False)`",
        averaged,
        mean_added,
        with_jit=True,
        fixes="silences.compilations-without-jit.collective",
    ),
)


@DEFAULTS.family(
    "silences.compilations-without-jit.{case}",
    case=CASES,
    title="Under `jax.disable_jit()`, the second call compiles at most one program: {case.text}.",
    fact="silences.compilations-without-jit.{case}",
    expect=lambda case: case.columns(),
)
def called(impl: Implementation, cluster: Cluster, case: Case) -> None:
    """Two calls while jit is off, with a count of what JAX compiles for each.

    A control shows which implementation it is, where `jax.vmap` takes the place of the map.
    """
    if case.by_vmap:
        control(impl, cluster)
    made = compilations()

    def body(x: Any) -> Any:
        return case.body(x)

    function = jax.vmap(body, axis_name="i") if case.by_vmap else impl.map(body, "i")
    rows = impl.given(cluster.rows(WIDTH))
    jax.clear_caches()

    def call(counts: list[int]) -> Any:
        before = len(made)
        with jax.disable_jit(), jax.disable_jit(False) if case.with_jit else nullcontext():
            results = jax.block_until_ready(function(rows))
        counts.append(len(made) - before)
        return np.asarray(results)

    for name in TWICE:
        counts: list[int] = []
        cluster.step(name, call, counts)
        for count in counts:
            cluster.note(AGAIN, {"compiled": count})
