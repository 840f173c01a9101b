"""A global that a body reads changes after a call; then the mapped function is transformed.

Legacy pmap traces the body again for each transformation, which so reads the new value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH, doubled
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

BEFORE, AFTER = "before the change", "after the change"
STALE = "the values before the change"
FACTOR = "factor"
SETTINGS: dict[str, float] = {}  # the global


@described("the rows, times five")
def fivefold(place: Place) -> Any:
    return place.rows(WIDTH) * 5


DEFAULTS = Defaults(
    claim="pmap-silence.changed-globals",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    expect=everywhere(
        every(
            in_steps(returns(doubled), BEFORE),
            in_steps(returns(fivefold, mistakes={STALE: doubled}), AFTER),
        )
    ),
)


def vmapped(mapped: Any, rows: Any, *others: Any) -> Any:
    """The arguments as the one element of a batch; the rows along the second axis."""
    axes = (1, *[0 for _ in others])
    return jax.vmap(mapped, axes, 1)(rows[:, None], *(x[None] for x in others))[:, 0]


def looped(mapped: Any, *args: Any) -> Any:
    """The arguments as the one element of a loop."""
    return jax.lax.map(lambda each: mapped(*each), tuple(x[None] for x in args))[0]


@dataclass(frozen=True, slots=True)
class Use:
    """What is done with the mapped function and its arguments."""

    key: str
    text: str
    apply: Callable[..., Any]


USES: Mapping[str, Use] = table(
    Use("jit", "`jax.jit`", lambda f, *args: jax.jit(lambda *all: f(*all))(*args)),
    Use("vmap", "`jax.vmap`", vmapped),
    Use("lower", "`lower().compile()`", lambda f, *args: f.lower(*args).compile()(*args)),
    Use("lax-map", "`jax.lax.map`", looped),
)


@DEFAULTS.family(
    "silences.changed-globals.{use}",
    use=USES,
    title="A global that a mapped body reads changes after a call: {use.text} of the mapped "
    "function reads the new value.",
    fact="silences.changed-globals",
)
def read(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A call; then, after the global changed, a transformation of the same mapped function."""
    SETTINGS[FACTOR] = 2.0
    mapped, rows = impl.map(lambda x: x * SETTINGS[FACTOR]), impl.given(cluster.rows(WIDTH))
    cluster.step(BEFORE, mapped, rows)
    SETTINGS[FACTOR] = 5.0
    cluster.step(AFTER, use.apply, mapped, rows)


@DEFAULTS.family(
    "silences.changed-globals.{use}-passed",
    use=USES,
    title="A value that changes is an unmapped argument: {use.text} of the mapped function reads "
    "the new one.",
    fact="silences.changed-globals.passed",
    fixes=lambda use: f"silences.changed-globals.{use.key}",
)
def passed(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """The same, with the value as an argument under `in_axes=None`."""
    mapped = impl.map(lambda x, factor: x * factor, in_axes=(0, None))
    rows = impl.given(cluster.rows(WIDTH))
    cluster.step(BEFORE, mapped, rows, np.float32(2))
    cluster.step(AFTER, use.apply, mapped, rows, np.float32(5))
