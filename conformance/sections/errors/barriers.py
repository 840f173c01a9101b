"""Barriers between processes: made by hand with a psum, and `sync_global_devices`.

The document knows misaligned barriers as a halted TPU core. Elsewhere a misaligned program may
hang, or pair one collective with another and go on with wrong numbers; so every number is compared,
and whoever waits is shown by the fault. Whether a barrier holds is told from the wall clock, of
which the processes of one machine share one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import FOUR_PROCESSES, Place, Topology
from conformance.judging.expectation import (
    Expectation,
    Finding,
    every,
    hangs,
    noted,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Observation
from conformance.sections.errors import sync

MISALIGNED = "migrate-pmap.core-halted"
ELSEWHERE = "pmap-silence.misaligned-barriers"
MAY_DIFFER = "migrate-pmap.synchronization-may-differ"
FIX = "migrate-pmap.fix-sync-global-devices"
MISUSE = "pmap-silence.sync-global-devices-misuse"
TOPOLOGIES = ("2x2", *FOUR_PROCESSES)

LATE_S = 1.5  # by which one process comes to the barrier after the others
CLOCK_S = 0.05  # within which two processes of a machine read the clock
HANG_S = 5.0  # after which a barrier that one process never reaches is called hung

MANY = 64  # elements of a collective that is not of a barrier's size


def barrier(impl: Any, cluster: Any) -> Callable[[], Any]:
    """A barrier as users write it: a psum of ones over all devices, and its result is awaited."""
    function = impl.map(lambda x: jax.lax.psum(x, "i"))
    ones = impl.given(np.ones(cluster.topology.devices_per_process, np.float32))
    return lambda: jax.block_until_ready(function(ones))


def total(impl: Any, cluster: Any, *shape: int) -> Callable[[], Any]:
    """The program between barriers: a sum of all rows."""
    function = impl.map(lambda x: jax.lax.psum(x, "i"))
    rows = impl.given(cluster.rows(*shape))
    return lambda: jax.block_until_ready(function(rows))


def counted(place: Place) -> Any:
    """the number of devices, in every row"""
    return np.full(place.topology.devices_per_process, place.topology.devices, np.float32)


def totalled(place: Place) -> Any:
    """the sum of all rows, in every row"""
    return np.repeat(place.all_rows().sum(0), place.topology.devices_per_process)


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
                findings.append(Finding(name, process, early <= CLOCK_S, self.text, saw))
        if not findings:
            findings = [Finding("any", 0, False, self.text, "no barrier was timed")]
        return findings


def timed(cluster: Any, name: str, wait: Callable[[], Any], *, late: bool) -> None:
    """A step that waits at a barrier, which the last process reaches late where asked for."""
    if late and cluster.process == cluster.topology.processes - 1:
        time.sleep(LATE_S)
    arrived = time.time()
    cluster.step(name, wait)
    cluster.note("arrived", arrived)
    cluster.note("left", time.time())


def everywhere(expectation: Expectation) -> dict[str, Expectation]:
    """The same of every implementation."""
    return dict.fromkeys(IMPLEMENTATIONS, expectation)


@clause(
    "errors.barriers.hand-made-aligned",
    claim=MISALIGNED,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        steps(
            barrier=returns(counted),
            program=returns(totalled),
            barrier_again=returns(counted),
        )
    ),
)
def hand_made_aligned(impl: Any, cluster: Any) -> None:
    """Barriers made by hand that all processes reach in the same order."""
    wait, program = barrier(impl, cluster), total(impl, cluster)
    cluster.step("barrier", wait)
    cluster.step("program", program)
    cluster.step("barrier again", wait)


@clause(
    "errors.barriers.hand-made-late",
    claim=MISALIGNED,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(every(returns(counted), Together())),
)
def hand_made_late(impl: Any, cluster: Any) -> None:
    """A barrier made by hand that one process reaches late: the others wait."""
    wait = barrier(impl, cluster)
    timed(cluster, "first barrier", wait, late=False)
    timed(cluster, "second barrier", wait, late=True)
    timed(cluster, "third barrier", wait, late=False)


@clause(
    "errors.barriers.hand-made-swapped",
    claim=MISALIGNED,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        raises("JaxRuntimeError", "Core halted unexpectedly", otherwise=totalled),
    ),
)
def hand_made_swapped(impl: Any, cluster: Any) -> None:
    """Half of the processes run the program before the barrier, the others after it."""
    wait, program = barrier(impl, cluster), total(impl, cluster)
    if cluster.process % 2:
        wait()
        cluster.step("program", program)
    else:
        cluster.step("program", program)
        wait()


@clause(
    "errors.barriers.hand-made-swapped-sizes",
    claim=MISALIGNED,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        raises(
            "JaxRuntimeError",
            "Core halted unexpectedly",
            otherwise=lambda place: np.repeat(
                place.all_rows(MANY).sum(0)[None], place.topology.devices_per_process, 0
            ),
        ),
    ),
)
def hand_made_swapped_sizes(impl: Any, cluster: Any) -> None:
    """As swapped, and the program's collective is not of the barrier's size."""
    wait, program = barrier(impl, cluster), total(impl, cluster, MANY)
    if cluster.process % 2:
        wait()
        cluster.step("program", program)
    else:
        cluster.step("program", program)
        wait()


@clause(
    "errors.barriers.hand-made-and-sync",
    claim=MISALIGNED,
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(
        raises("JaxRuntimeError", "Core halted unexpectedly", otherwise=counted),
    ),
)
def hand_made_and_sync(impl: Any, cluster: Any) -> None:
    """Half of the processes wait at a barrier made by hand, the others in sync_global_devices."""
    wait = barrier(impl, cluster)
    if cluster.process % 2:
        cluster.step("barrier", wait)
        sync("a")
    else:
        sync("a")
        cluster.step("barrier", wait)


@clause(
    "errors.barriers.hand-made-process-missing",
    claim=ELSEWHERE,
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs()),
)
def hand_made_process_missing(impl: Any, cluster: Any) -> None:
    """The last process never comes to a second barrier made by hand."""
    wait = barrier(impl, cluster)
    cluster.step("barrier", wait)
    if cluster.process < cluster.topology.processes - 1:
        cluster.step("barrier again", wait)


@clause(
    "errors.barriers.map-without-collective",
    claim=MAY_DIFFER,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        every(
            returns(lambda place: place.rows(2) * 2, text="this process's rows, doubled"),
            noted(
                "seconds",
                f"waits for nobody: less than {LATE_S / 2} s",
                lambda _, s: s < LATE_S / 2,
            ),
        )
    ),
)
def map_without_collective(impl: Any, cluster: Any) -> None:
    """A map without a collective is no barrier: it does not wait for a late process."""
    function, rows = impl.map(lambda x: x * 2), impl.given(cluster.rows(2))
    for name in ("first call", "second call", "third call"):
        sync(f"before the {name}")  # so that compiling does not look like waiting
        if cluster.process == cluster.topology.processes - 1 and name != "first call":
            time.sleep(LATE_S)
        began = time.perf_counter()
        cluster.step(name, function, rows)
        cluster.note("seconds", 0.0 if name == "first call" else time.perf_counter() - began)
