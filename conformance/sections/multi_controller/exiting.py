"""The effect of a process that ends while the others still work.

At its end a program waits for the other processes of the job, 300 seconds unless
`shutdown_timeout_seconds` says otherwise. `multi_controller.leaving.returns-between` shows that all
is well if they end in time; it differs from these by that option only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    ARRAYS,
    BEGIN,
    DEADLINE_S,
    OF_A_JOB,
    ends,
    run,
    terminated,
)
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.worker.protocols import Cluster, Implementation

BARRIER_S = 3
WORKS_ON_S = 15  # long enough that the barrier's time is over on a loaded machine
SUM = r"sum 3\.0"


@dataclass(frozen=True, slots=True)
class Early:
    """Process `who` comes to its end while the other works on."""

    key: str
    text: str
    who: int


EARLY: Mapping[str, Early] = table(
    Early("other", "Process 1 ends, and process 0", 1),
    Early("first", "Process 0 ends, and process 1", 0),
)


def ended_by_the_barrier(early: Early) -> Expectation:
    """Both are ended by JAX; before 0.8.1 the option is unknown, and nothing begins."""
    unknown = r"exit 1 \| TypeError: .*'shutdown_timeout_seconds'"
    lines = [(SUM, "done") if number == early.who else (SUM,) for number in range(2)]
    return by_release(
        "0.8.1",
        before=every(*(ends(number, unknown, "is refused the option") for number in range(2))),
        since=every(*(terminated(number, *said) for number, said in enumerate(lines))),
    )


@family(
    "multi_controller.leaving.exit-barrier.{early}",
    early=EARLY,
    claim="pmap-silence.process-that-goes",
    title="{early.text}, which is still working after shutdown_timeout_seconds, is killed too.",
    fact="multi_controller.leaving.exit-barrier",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=lambda early: of_jax(ended_by_the_barrier(early)),
    deadline_s=DEADLINE_S,
)
def exit_barrier(impl: Implementation, cluster: Cluster, early: Early) -> None:
    """A process comes to its end, and the other takes longer than the barrier at the exit waits."""
    run(
        cluster,
        f"""{BEGIN}initialize(shutdown_timeout_seconds={BARRIER_S})
{ARRAYS}
if number != {early.who}:
    time.sleep({WORKS_ON_S})
print("done", flush=True)
""",
    )
