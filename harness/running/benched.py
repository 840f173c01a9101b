"""What `dev bench` times, and nobody judges: a case that maps, or that ends its last process."""

from __future__ import annotations

import os
import signal

from conformance.spec.clause import clause
from conformance.spec.columns import everywhere
from conformance.spec.expectation import not_applicable
from conformance.worker.protocols import Cluster, Implementation


@clause(
    "bench.case",
    claim="migrate-pmap.incompatible-devices",  # a clause has one; this one is in no catalogue
    expect=everywhere(not_applicable("timed, not judged")),
)
def case(impl: Implementation, cluster: Cluster, dies: bool = False) -> None:
    """Map twice; if it `dies`, the last process is killed before."""
    if dies and cluster.process == cluster.topology.processes - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))
