"""`sync_global_devices`, the documented remedy for a barrier made by hand: used well, and not.

It is the same barrier whatever maps a program uses; each implementation runs a map before and after
it, because whether the two get along is the question.
"""

from __future__ import annotations

from typing import Any

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.topology import FOUR_PROCESSES, ONE_PROCESS
from conformance.judging.expectation import every, hangs, raises, returns, steps
from conformance.sections.errors import sync
from conformance.sections.errors.barriers import (
    FIX,
    HANG_S,
    MISUSE,
    TOPOLOGIES,
    Together,
    everywhere,
    timed,
    total,
    totalled,
)

NOTHING = returns(lambda place: [], text="nothing, without an error")


@clause(
    "errors.barriers.fix-sync",
    claim=FIX,
    fixes="errors.barriers.hand-made-swapped",
    topologies=(*ONE_PROCESS, *TOPOLOGIES),
    expect=everywhere(
        steps(
            program=returns(totalled),
            barrier=NOTHING,
            program_again=returns(totalled),
            barrier_again=NOTHING,
        )
    ),
)
def fix_sync(impl: Any, cluster: Any) -> None:
    """`sync_global_devices` between programs, in all processes in the same order."""
    program = total(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, "first")
    cluster.step("program again", program)
    cluster.step("barrier again", sync, "second")


@clause(
    "errors.barriers.fix-sync-late",
    claim=FIX,
    fixes="errors.barriers.hand-made-swapped",
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        every(
            steps(
                program=returns(totalled),
                first_barrier=NOTHING,
                second_barrier=NOTHING,
                third_barrier=NOTHING,
            ),
            Together(),
        )
    ),
)
def fix_sync_late(impl: Any, cluster: Any) -> None:
    """`sync_global_devices`, which one process reaches late: nobody goes on before it."""
    cluster.step("program", total(impl, cluster))
    timed(cluster, "first barrier", lambda: sync("first"), late=False)
    timed(cluster, "second barrier", lambda: sync("second"), late=True)
    timed(cluster, "third barrier", lambda: sync("second"), late=False)


@clause(
    "errors.barriers.sync-other-names",
    claim=MISUSE,
    needs=processes(2),
    topologies=TOPOLOGIES,
    expect=everywhere(
        steps(
            program=returns(totalled),
            barrier=raises(AssertionError, "name mismatch", otherwise=lambda place: []),
            program_again=returns(totalled),
        )
    ),
)
def sync_other_names(impl: Any, cluster: Any) -> None:
    """`sync_global_devices` with another name in every process is refused; what follows works."""
    program = total(impl, cluster)
    cluster.step("program", program)
    cluster.step("barrier", sync, f"barrier of {cluster.process}")
    cluster.step("program again", program)


@clause(
    "errors.barriers.sync-process-missing",
    claim=MISUSE,
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs()),
)
def sync_process_missing(impl: Any, cluster: Any) -> None:
    """The last process never comes to `sync_global_devices`: the others do not pass it."""
    cluster.step("program", total(impl, cluster))
    cluster.step("barrier", sync, "first")
    if cluster.process < cluster.topology.processes - 1:
        cluster.step("barrier again", sync, "second")
