"""Launching the processes of a job: by Open MPI, by Slurm, and by hand.

Each program runs as its own job, with two CPU devices in each process. The launchers are real;
Slurm is started for the clause on this machine, and ended after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.sections.multi_controller.plain_jobs import (
    DEADLINE_S,
    INITIALIZED,
    JOB,
    JOB_S,
    NOT_INITIALIZED,
    ON_CPU,
    ONE,
    JobError,
    answers,
    apart,
    one_job,
    run_text,
)
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import in_steps, raises
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.launchers import OPEN_MPI, SLURM, Launcher, launched
from conformance.worker.protocols import Cluster, Implementation

ONE_MACHINE = "the test starts its own processes"

# --- Launchers ------------------------------------------------------------------------------------


LAUNCHERS: Mapping[str, Launcher] = table(OPEN_MPI, SLURM)
SIZES: Mapping[str, int] = {"two": 2, "four": 4}
CLAIMS = {"open-mpi": "multi-process.launch-then-initialize", "slurm": "multi-process.launch-slurm"}

DEFAULTS = Defaults(on_cpu=True, topologies=ONE_PROCESS, deadline_s=DEADLINE_S)


@DEFAULTS.family(
    "multi_controller.launch.{launcher}.{size}",
    launcher=LAUNCHERS,
    size=SIZES,
    claim=lambda launcher: CLAIMS[launcher.key],
    title=lambda launcher, size: (
        f"{size} processes started by {launcher.text} are one job: initialize() has no arguments."
    ),
    fact="multi_controller.launch.{launcher}",
    left_out=ONE_MACHINE,
    expect=lambda size: of_jax(one_job(size)),
)
def launch(impl: Implementation, cluster: Cluster, launcher: Launcher, size: int) -> None:
    """A launcher starts a program that calls `jax.distributed.initialize()` without arguments."""
    cluster.step(
        JOB, lambda: answers(launched(launcher, INITIALIZED, size, ON_CPU, deadline_s=JOB_S))
    )


@DEFAULTS.family(
    "multi_controller.launch.{launcher}.not-initialized",
    launcher=LAUNCHERS,
    claim="multi-process.launch-then-initialize",
    title="Two processes started by {launcher.text} that do not call initialize do not form a job.",
    fact="multi_controller.launch.not-initialized",
    left_out=ONE_MACHINE,
    expect=of_jax(apart(2)),
)
def not_initialized(impl: Implementation, cluster: Cluster, launcher: Launcher) -> None:
    """A launcher starts a program that never calls `jax.distributed.initialize()`."""
    cluster.step(
        JOB, lambda: answers(launched(launcher, NOT_INITIALIZED, 2, ON_CPU, deadline_s=JOB_S))
    )


@DEFAULTS.clause(
    "multi_controller.launch.by-hand.once",
    claim="multi-process.launch-is-manual",
    expect=of_jax(apart(1)),
)
def once(impl: Implementation, cluster: Cluster) -> None:
    """A program that is started once is a job of one process with only its own devices."""
    cluster.step(JOB, lambda: answers(run_text(NOT_INITIALIZED, ONE)))


@DEFAULTS.clause(
    "multi_controller.launch.by-hand.without-arguments",
    claim="multi-process.launch-is-manual",
    expect=of_jax(
        in_steps(
            raises(
                JobError,
                r"process 0: exit 1: ValueError: coordinator_address should be defined\.$",
            ),
            JOB,
        )
    ),
)
def without_arguments(impl: Implementation, cluster: Cluster) -> None:
    """A program started without a launcher calls `initialize()` without arguments."""
    cluster.step(JOB, lambda: answers(run_text(INITIALIZED, ONE)))
