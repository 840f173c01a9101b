"""Barriers between processes: made by hand with a psum, and `sync_global_devices`, their remedy.

The document knows misaligned barriers as a halted TPU core. Elsewhere a misaligned program may
hang, or pair one collective with another and go on with wrong numbers; so every number is compared,
and whoever waits is shown by the fault. Whether a barrier holds is told from the wall clock, of
which the processes of one machine share one.

`sync_global_devices` is the same barrier whatever maps a program uses; each implementation runs a
map before and after it, because whether the two get along is the question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import (
    FOUR_PROCESSES,
    ONE_AND_SEVERAL,
    SEVERAL_PROCESSES,
    Place,
    Topology,
)
from conformance.judging.columns import everywhere
from conformance.judging.expectation import (
    Finding,
    Model,
    all_but_the_last,
    every,
    hangs,
    noted,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Observation
from conformance.probing.bodies import double, doubled, psum
from conformance.sections.errors import sync

MISALIGNED = "migrate-pmap.core-halted"
FIX = "migrate-pmap.fix-sync-global-devices"
MISUSE = "pmap-silence.sync-global-devices-misuse"

ALIGNED_FACT = "errors.barriers.hand-made-aligned"
MISALIGNED_FACT = "errors.barriers.hand-made-misaligned"
MISSING_FACT = "errors.barriers.process-missing"
FIX_FACT = "errors.barriers.fix-sync"

LATE_S = 1.5  # by which one process comes to the barrier after the others
CLOCK_S = 0.05  # within which two processes of a machine read the clock
HANG_S = 5.0  # after which a barrier that one process never reaches is called hung


def hand_made(impl: Any, cluster: Any) -> Callable[[], Any]:
    """A barrier as users write it: a psum of ones over all devices, and its result is awaited."""
    function = impl.map(psum())
    ones = impl.given(np.ones(cluster.topology.devices_per_process, np.float32))
    return lambda: jax.block_until_ready(function(ones))


def summing(impl: Any, cluster: Any, *shape: int) -> Callable[[], Any]:
    """The program between barriers: a sum of all rows."""
    function = impl.map(psum())
    rows = impl.given(cluster.rows(*shape))
    return lambda: jax.block_until_ready(function(rows))


def counted(place: Place) -> Any:
    """the number of devices, in every row"""
    return np.full(place.topology.devices_per_process, place.topology.devices, np.float32)


def total(*shape: int) -> Model:
    """What `summing` rows of this shape returns."""

    def model(place: Place) -> Any:
        """the sum of all rows, in every row"""
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
                findings.append(Finding(name, process, early <= CLOCK_S, self.text, saw))
        if not findings:
            findings = [Finding("any", 0, False, self.text, "no barrier was timed")]
        return findings


def timed(cluster: Any, name: str, wait: Callable[[], Any], *, late: bool) -> None:
    """A step that waits at a barrier, which the last process reaches late where asked for."""
    if late and is_last(cluster):
        time.sleep(LATE_S)
    arrived = time.time()
    cluster.step(name, wait)
    cluster.note("arrived", arrived)
    cluster.note("left", time.time())


def is_last(cluster: Any) -> bool:
    """Whether this is the process that comes late, or not at all."""
    return bool(cluster.process == cluster.topology.processes - 1)


def halted(otherwise: Model) -> Any:
    """The documented end of a misaligned program, in every step."""
    return raises("JaxRuntimeError", "Core halted unexpectedly", otherwise=otherwise)


PASSED = returns(lambda place: [], text="nothing, without an error")


@clause(
    "errors.barriers.hand-made-aligned",
    fact=ALIGNED_FACT,
    claim=MISALIGNED,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(
        steps(barrier=returns(counted), program=returns(total()), barrier_again=returns(counted))
    ),
)
def hand_made_aligned(impl: Any, cluster: Any) -> None:
    """Barriers made by hand that all processes reach in the same order."""
    wait, program = hand_made(impl, cluster), summing(impl, cluster)
    cluster.step("barrier", wait)
    cluster.step("program", program)
    cluster.step("barrier again", wait)


@clause(
    "errors.barriers.hand-made-late",
    fact=ALIGNED_FACT,
    claim=MISALIGNED,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(every(returns(counted), Together())),
)
def hand_made_late(impl: Any, cluster: Any) -> None:
    """A barrier made by hand that one process reaches late: the others wait."""
    wait = hand_made(impl, cluster)
    timed(cluster, "first barrier", wait, late=False)
    timed(cluster, "second barrier", wait, late=True)
    timed(cluster, "third barrier", wait, late=False)


@dataclass(frozen=True, slots=True)
class Swapped:
    """A program that swaps places with a barrier: the shape of the row that it sums."""

    key: str
    text: str
    shape: tuple[int, ...]


SWAPPED: Mapping[str, Swapped] = table(
    Swapped(
        "swapped",
        "Half of the processes run the program before the barrier, the others after it.",
        (),
    ),
    Swapped(
        "swapped-sizes",
        "As swapped, and the program's collective is not of the barrier's size.",
        (64,),
    ),
)


@family(
    "errors.barriers.hand-made-{swapped}",
    swapped=SWAPPED,
    fact=MISALIGNED_FACT,
    claim=MISALIGNED,
    title="{swapped.text}",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=lambda swapped: everywhere(halted(total(*swapped.shape))),
)
def hand_made_swapped(impl: Any, cluster: Any, swapped: Swapped) -> None:
    """A barrier made by hand and a program, which half of the processes run the other way round."""
    wait, program = hand_made(impl, cluster), summing(impl, cluster, *swapped.shape)
    if cluster.process % 2:
        wait()
        cluster.step("program", program)
    else:
        cluster.step("program", program)
        wait()


@clause(
    "errors.barriers.hand-made-and-sync",
    fact=MISALIGNED_FACT,
    claim=MISALIGNED,
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(halted(counted)),
)
def hand_made_and_sync(impl: Any, cluster: Any) -> None:
    """Half of the processes wait at a barrier made by hand, the others in sync_global_devices."""
    wait = hand_made(impl, cluster)
    if cluster.process % 2:
        cluster.step("barrier", wait)
        sync("a")
    else:
        sync("a")
        cluster.step("barrier", wait)


@clause(
    "errors.barriers.hand-made-process-missing",
    fact=MISSING_FACT,
    claim="pmap-silence.misaligned-barriers",
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs("barrier again", all_but_the_last)),
)
def hand_made_process_missing(impl: Any, cluster: Any) -> None:
    """The last process never comes to a second barrier made by hand."""
    wait = hand_made(impl, cluster)
    cluster.step("barrier", wait)
    if not is_last(cluster):
        cluster.step("barrier again", wait)


@clause(
    "errors.barriers.map-without-collective",
    claim="migrate-pmap.synchronization-may-differ",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(
        every(
            returns(doubled(2)),
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
    function, rows = impl.map(double()), impl.given(cluster.rows(2))
    for name in ("first call", "second call", "third call"):
        sync(f"before the {name}")  # so that compiling does not look like waiting
        if is_last(cluster) and name != "first call":
            time.sleep(LATE_S)
        began = time.perf_counter()
        cluster.step(name, function, rows)
        cluster.note("seconds", 0.0 if name == "first call" else time.perf_counter() - began)


@clause(
    "errors.barriers.fix-sync",
    fact=FIX_FACT,
    claim=FIX,
    fixes="errors.barriers.hand-made-swapped",
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(
        steps(
            program=returns(total()),
            barrier=PASSED,
            program_again=returns(total()),
            barrier_again=PASSED,
        )
    ),
)
def fix_sync(impl: Any, cluster: Any) -> None:
    """`sync_global_devices` between programs, in all processes in the same order."""
    program = summing(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, "first")
    cluster.step("program again", program)
    cluster.step("barrier again", sync, "second")


@clause(
    "errors.barriers.fix-sync-late",
    fact=FIX_FACT,
    claim=FIX,
    fixes="errors.barriers.hand-made-swapped",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(
        every(
            steps(
                program=returns(total()),
                first_barrier=PASSED,
                second_barrier=PASSED,
                third_barrier=PASSED,
            ),
            Together(),
        )
    ),
)
def fix_sync_late(impl: Any, cluster: Any) -> None:
    """`sync_global_devices`, which one process reaches late: nobody goes on before it."""
    cluster.step("program", summing(impl, cluster))
    timed(cluster, "first barrier", lambda: sync("first"), late=False)
    timed(cluster, "second barrier", lambda: sync("second"), late=True)
    timed(cluster, "third barrier", lambda: sync("second"), late=False)


@clause(
    "errors.barriers.sync-other-names",
    claim=MISUSE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(
        steps(
            program=returns(total()),
            barrier=raises(AssertionError, "name mismatch", otherwise=lambda place: []),
            program_again=returns(total()),
        )
    ),
)
def sync_other_names(impl: Any, cluster: Any) -> None:
    """`sync_global_devices` with another name in every process is refused; what follows works."""
    program = summing(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, f"barrier of {cluster.process}")
    cluster.step("program again", program)


@clause(
    "errors.barriers.sync-process-missing",
    fact=MISSING_FACT,
    claim=MISUSE,
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs("barrier again", all_but_the_last)),
)
def sync_process_missing(impl: Any, cluster: Any) -> None:
    """The last process never comes to `sync_global_devices`: the others do not pass it."""
    cluster.step("program", summing(impl, cluster))
    cluster.step("barrier", sync, "first")
    if not is_last(cluster):
        cluster.step("barrier again", sync, "second")
