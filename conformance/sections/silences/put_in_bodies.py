"""jax.device_put to a sharding in a mapped body, which changes nothing under legacy pmap."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH, doubled
from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family
from conformance.worker.protocols import Cluster, Implementation

CHECK_ON = "silences.put-in-body.checked"


@family(
    "silences.put-in-body.{check}",
    check=CHECKS,
    claim="pmap-silence.devices-in-bodies",
    title="A mapped body puts its row on all devices, jax.device_put(x, NamedSharding(mesh, P()))"
    "{check.text}.",
    fact="silences.put-in-body",
    fixes=lambda check: None if check.on else CHECK_ON,
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    expect=lambda check: asked(everywhere(twice(returns(doubled))), check),
)
def put(impl: Implementation, cluster: Cluster, check: Check) -> None:
    """A map whose body puts its row, by the name of the map's axis."""
    replicated = NamedSharding(impl.mesh("i"), P())

    def body(x: Any) -> Any:
        return jax.device_put(x, replicated) * 2

    cluster.twice(impl.map(body, check_vma=check.on), impl.given(cluster.rows(WIDTH)))
