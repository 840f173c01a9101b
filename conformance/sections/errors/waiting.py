"""Parts of the clauses on barriers: a program between barriers, and records of which process
waited.

Waiting is derived from the wall clock, which the processes of one machine share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.codes import Code
from conformance.spec.comparing import Model
from conformance.spec.expectation import Finding
from conformance.spec.observation import Observation
from conformance.spec.texts import described
from conformance.spec.topology import Place, Topology
from conformance.worker.bodies import psum
from conformance.worker.protocols import Cluster, Implementation

MISSING_FACT = "errors.barriers.process-missing"

LATE_S = 1.5  # by which one process comes to the barrier after the others
CLOCK_S = 0.05  # within which two processes of a machine read the clock
WAITED_FOR_S = 20.0  # after which others are taken to wait; a map that waits for nobody takes none
HANG_S = 5.0  # after which a barrier that one process never reaches is called hung


def summing(impl: Implementation, cluster: Cluster, *shape: int) -> Callable[[], Any]:
    """The program between barriers: a sum of all rows."""
    function = impl.map(psum())
    rows = impl.given(cluster.rows(*shape))
    return lambda: jax.block_until_ready(function(rows))


@described("the number of devices, in every row")
def counted(place: Place) -> Any:
    return np.full(place.topology.devices_per_process, place.topology.devices, np.float32)


def total(*shape: int) -> Model:
    """Return the model of `summing` for rows of this shape."""

    @described("the sum of all rows, in every row")
    def model(place: Place) -> Any:
        return np.stack([place.all_rows(*shape).sum(0)] * place.topology.devices_per_process)

    return model


@dataclass(frozen=True, slots=True)
class Together:
    """No process leaves the barrier before the last one has arrived at it."""

    text: str = "no process leaves the barrier before the last one has arrived"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        findings = []
        names = [s.name for o in observations for s in o.steps if "left" in s.extra]
        for name in dict.fromkeys(names):
            times = {o.process: s.extra for o in observations for s in o.steps if s.name == name}
            last = max(t.get("arrived", float("inf")) for t in times.values())
            for process, seen in times.items():
                early = last - seen.get("left", 0.0)
                saw = f"left {-early:+.3f} s after the last arrival"
                right = early <= CLOCK_S
                findings.append(Finding(name, process, right, self.text, saw, Code.ENDING))
        if not findings:
            saw = "no barrier was timed"
            findings = [Finding("any", 0, False, self.text, saw, Code.ENDING)]
        return findings


def timed(cluster: Cluster, name: str, wait: Callable[[], Any], *, late: bool) -> None:
    """A step that waits at a barrier, which the last process reaches late where asked for."""
    if late and is_last(cluster):
        time.sleep(LATE_S)
    arrived = time.time()
    cluster.step(name, wait)
    cluster.note("arrived", arrived)
    cluster.note("left", time.time())


def say(event: str) -> None:
    """Tell the other processes of the job that something happened, past all devices."""
    _service().key_value_set(event, "")


def heard(event: str, within_s: float) -> bool:
    """Return whether a process of the job has set the event, or does within this time."""
    try:
        _service().blocking_key_value_get(event, max(1, int(within_s * 1000)))
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _service() -> Any:
    from jax._src.distributed import global_state  # the job's coordination service, JAX's own

    return global_state.client


def is_last(cluster: Cluster) -> bool:
    """Return whether this is the process that is late or absent."""
    return bool(cluster.process == cluster.topology.processes - 1)
