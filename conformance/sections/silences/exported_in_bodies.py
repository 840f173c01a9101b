"""A function that `jax.export` exported, called in a body, and its gradient there.

Such a model often comes from a file; its derivative is a custom_vjp that jax.export makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export
from numpy.typing import NDArray

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(claim="pmap-silence.foreign-code", needs=devices(2), left_out=ONE_PROCESS_ALONE)

Rows = NDArray[Any]
WEIGHTS = np.array([2, 3, 5], np.float32)


def exported() -> Callable[[Any], Any]:
    """The call of an exported function of one row."""
    shape = jax.ShapeDtypeStruct((WIDTH,), np.float32)
    call: Callable[[Any], Any] = export.export(jax.jit(lambda x: x * x * WEIGHTS))(shape).call
    return call


@dataclass(frozen=True, slots=True)
class Use:
    """What a body does with the function, and what NumPy makes of all rows."""

    key: str
    text: str
    body: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
    by_numpy: Callable[[Rows], Any]

    def columns(self, check: Check) -> Columns:
        """NumPy's values."""

        def model(place: Place) -> Any:
            return self.by_numpy(place.rows(WIDTH))

        right = returns(model, text=f"what NumPy gives for {self.text}")
        return asked(everywhere(twice(right)), check)


USES: Mapping[str, Use] = table(
    Use("call", "an exported function", lambda f: f, lambda a: a * a * WEIGHTS),
    Use(
        "gradient",
        "the gradient of an exported function",
        lambda f: jax.grad(lambda x: f(x).sum()),
        lambda a: 2 * a * WEIGHTS,
    ),
)


@DEFAULTS.family(
    "silences.exported-in-bodies.{use}.{check}",
    use=USES,
    check=CHECKS,
    title="A mapped body calls {use.text}{check.text}.",
    fact="silences.exported-in-bodies.{use}",
    fixes=lambda use, check: (
        "silences.exported-in-bodies.gradient.checked"
        if use.key == "gradient" and not check.on
        else None
    ),
    expect=lambda use, check: use.columns(check),
)
def in_body(impl: Implementation, cluster: Cluster, use: Use, check: Check) -> None:
    """A map whose body calls the function."""
    body = use.body(exported())
    function = impl.map(lambda x: body(x), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))
