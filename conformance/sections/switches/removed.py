"""Public names that went away with the old pmap: whether the error of their use says what to do.

All names that went away are listed by `pmap-conformance dev names`; these stand for what becomes of
such a name, in the modules that libraries import them from.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from conformance.sections.switches import REMOVED_IN
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, in_steps, raises, returns, twice, warns
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.worker.protocols import Cluster, Implementation

REPLACES = r"(?i)\buse `?jax\."
WARNED_IN = "0.8.2"
DEPRECATED = r"^jax\.interpreters\.pxla\.xla_pmap_p is deprecated"
THERE = returns(lambda place: np.True_, text="yes: the module has it")


@dataclass(frozen=True, slots=True)
class Gone:
    """A public name that JAX 0.10 no longer has."""

    key: str
    module: str
    name: str


NAMES: Mapping[str, Gone] = table(
    Gone("pvary", "jax.lax", "pvary"),
    Gone("sharding-spec", "jax.interpreters.pxla", "ShardingSpec"),
    Gone("pmap-primitive", "jax.extend.core.primitives", "xla_pmap_p"),
)


def there_or_explained() -> Expectation:
    """It is there until it is removed, and then the error names what to use."""
    return by_release(
        REMOVED_IN, before=twice(THERE), since=twice(raises(AttributeError, REPLACES))
    )


@family(
    "switches.removed.{gone}",
    gone=NAMES,
    claim="pmap-silence.removed-names-say-so",
    title="`{gone.module}.{gone.name}` exists, or its error names what to use instead.",
    left_out="the result does not depend on the number of processes",
    expect=lambda gone: of_jax(there_or_explained()),
)
def look_up(impl: Implementation, cluster: Cluster, gone: Gone) -> None:
    """A public name is looked up in its module, twice."""
    module = importlib.import_module(gone.module)

    def there() -> np.bool_:
        with warnings.catch_warnings(action="ignore"):  # once in a process: tested elsewhere
            return np.bool_(getattr(module, gone.name) is not None)

    cluster.twice(there)


@clause(
    "switches.removed.pmap-primitive-of-pxla",
    claim="pmap-silence.deprecated-names-warn-and-go",
    left_out="the result does not depend on the number of processes",
    fresh=True,
    expect=of_jax(
        by_release(
            WARNED_IN,
            before=twice(THERE),
            since=by_release(
                REMOVED_IN,
                before=every(
                    twice(THERE),
                    in_steps(warns(DeprecationWarning, DEPRECATED), "first call"),
                ),
                since=twice(raises(AttributeError, "has no attribute 'xla_pmap_p'$")),
            ),
        )
    ),
)
def look_up_in_pxla(impl: Implementation, cluster: Cluster) -> None:
    """`jax.interpreters.pxla.xla_pmap_p`, which libraries import, warns before it goes."""
    module = importlib.import_module("jax.interpreters.pxla")
    cluster.twice(lambda: np.bool_(module.xla_pmap_p is not None))
