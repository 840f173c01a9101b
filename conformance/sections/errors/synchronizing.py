"""`sync_global_devices`, the fix for a hand-made barrier, and its misuse.

It is the same barrier under every implementation; each runs a mapped function before and after it,
to test that both work together.
"""

from __future__ import annotations

from conformance.sections.errors import sync
from conformance.sections.errors.waiting import (
    HANG_S,
    MISSING_FACT,
    Together,
    is_last,
    summing,
    timed,
    total,
)
from conformance.spec.clause import clause, processes
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, hangs, raises, returns, steps
from conformance.spec.faults import all_but_the_last
from conformance.spec.topology import FOUR_PROCESSES, ONE_AND_SEVERAL, SEVERAL_PROCESSES
from conformance.worker.protocols import Cluster, Implementation

FIX = "migrate-pmap.fix-sync-global-devices"
FIX_FACT = "errors.barriers.fix-sync"

PASSED = returns(lambda place: None, text="nothing, without an error")

DEFAULTS = Defaults(
    claim="pmap-silence.sync-global-devices-misuse",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
)


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
def fix_sync(impl: Implementation, cluster: Cluster) -> None:
    """`sync_global_devices` between programs, in all processes in the same order."""
    program = summing(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, "first")
    cluster.step("program again", program)
    cluster.step("barrier again", sync, "second")


@DEFAULTS.clause(
    "errors.barriers.fix-sync-late",
    fact=FIX_FACT,
    claim=FIX,
    fixes="errors.barriers.hand-made-swapped",
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
def fix_sync_late(impl: Implementation, cluster: Cluster) -> None:
    """`sync_global_devices` that one process reaches late: no process passes it before."""
    cluster.step("program", summing(impl, cluster))
    timed(cluster, "first barrier", lambda: sync("first"), late=False)
    timed(cluster, "second barrier", lambda: sync("second"), late=True)
    timed(cluster, "third barrier", lambda: sync("second"), late=False)


@DEFAULTS.clause(
    "errors.barriers.sync-other-names",
    expect=everywhere(
        steps(
            program=returns(total()),
            barrier=raises(
                AssertionError,
                r"^sync_global_devices name mismatch \('barrier of \d'\)\. Expected: \[.*\]; got: ",
                otherwise=lambda place: None,
            ),
            program_again=returns(total()),
        )
    ),
)
def sync_other_names(impl: Implementation, cluster: Cluster) -> None:
    """`sync_global_devices` with a different name in each process is refused; later
    programs work.
    """
    program = summing(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, f"barrier of {cluster.process}")
    cluster.step("program again", program)


@DEFAULTS.clause(
    "errors.barriers.sync-process-missing",
    fact=MISSING_FACT,
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs("barrier again", all_but_the_last)),
)
def sync_process_missing(impl: Implementation, cluster: Cluster) -> None:
    """The last process never calls `sync_global_devices`: the others do not pass it."""
    cluster.step("program", summing(impl, cluster))
    cluster.step("barrier", sync, "first")
    if not is_last(cluster):
        cluster.step("barrier again", sync, "second")
