"""`jax.export` of a mapped function, and of a jit of one."""

from __future__ import annotations

from typing import Any

import jax
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    control,
    doubled,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_pmaps, unless_legacy
from conformance.spec.combining import any_of
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, raises, returns
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(claim="pmap-silence.export", needs=devices(2), left_out=ONE_PROCESS_ALONE)


def exported(impl: Implementation, cluster: Cluster, function: Any) -> Any:
    """Return what the exported function returns for the rows."""
    rows = cluster.rows(WIDTH)
    found = export.export(function)(jax.ShapeDtypeStruct(rows.shape, rows.dtype))
    return found.call(jax.device_put(rows, NamedSharding(impl.mesh("i"), P("i"))))


@DEFAULTS.clause(
    "silences.export.mapped",
    expect=of_pmaps(
        every(
            CONTROLLED,
            in_steps(
                any_of(
                    raises(ValueError, "^Function to be exported must be the result of"),
                    raises(NotImplementedError, "^serialization is supported only for jit"),
                ),
                *TWICE,
            ),
        ),
        "impl.map returns a jit there",
    ),
)
def mapped(impl: Implementation, cluster: Cluster) -> None:
    """`jax.export.export` refuses a mapped function that is not under jit."""
    control(impl, cluster)
    cluster.twice(exported, impl, cluster, impl.map(lambda x: x * 2))


@DEFAULTS.clause(
    "silences.export.jitted",
    expect=unless_legacy(
        every(
            CONTROLLED,
            in_steps(raises(NotImplementedError, "^serialization error, unimplemented"), *TWICE),
        ),
        every(CONTROLLED, in_steps(returns(doubled), *TWICE)),
    ),
)
def jitted(impl: Implementation, cluster: Cluster) -> None:
    """`jax.export.export` of a jit of a mapped function gives a function that can be called."""
    control(impl, cluster)
    function = impl.map(lambda x: x * 2)
    cluster.twice(exported, impl, cluster, jax.jit(lambda x: function(x)))
