"""Jobs that survive: the loss of a process in a recoverable job, and a restart."""

from __future__ import annotations

from conformance.sections.multi_controller.fates import (
    ARRAYS,
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    at_once,
    by_heartbeat,
    ends,
    prints_lines,
    run,
    terminated,
)
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every
from conformance.spec.topology import Topology
from conformance.worker.protocols import Cluster, Implementation

FOUR = Topology(4, 1)
GONE = r"SIGKILL \| sum "

DEFAULTS = Defaults(on_cpu=True, left_out=OF_A_JOB, deadline_s=DEADLINE_S)


def killed(process: int) -> str:
    """A job that computes; one process is killed, and the others wait for two heartbeats."""
    return f"""{BEGIN}{COMPUTE}
if number == {process}:
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(10)
print("done", flush=True)
os._exit(0)
"""


@DEFAULTS.clause(
    "multi_controller.leaving.killed-recoverable",
    claim="pmap-silence.process-that-goes",
    expect=of_jax(every(prints_lines(0, "sum 3.0", "done"), ends(1, GONE + r"3\.0", "is gone"))),
)
def killed_recoverable(impl: Implementation, cluster: Cluster) -> None:
    """With jax_enable_recoverability, the job continues when one of its processes is killed."""
    run(cluster, killed(1), JAX_ENABLE_RECOVERABILITY="1")


@DEFAULTS.clause(
    "multi_controller.leaving.first-killed-recoverable",
    claim="pmap-silence.process-that-goes",
    expect=of_jax(
        every(terminated(1, r"sum 3\.0"), at_once(1), ends(0, GONE + r"3\.0", "is gone"))
    ),
)
def first_killed_recoverable(impl: Implementation, cluster: Cluster) -> None:
    """With jax_enable_recoverability too, the others are killed when process 0 is killed."""
    run(cluster, killed(0), JAX_ENABLE_RECOVERABILITY="1")


@DEFAULTS.clause(
    "multi_controller.leaving.one-of-four-killed",
    claim="pmap-silence.process-that-goes",
    expect=of_jax(
        every(
            *(part for n in (0, 1, 3) for part in (terminated(n, r"sum 10\.0"), by_heartbeat(n))),
            ends(2, GONE + r"10\.0", "is gone"),
        )
    ),
)
def one_of_four_killed(impl: Implementation, cluster: Cluster) -> None:
    """One process of four is killed between collectives: all others are killed by a missed
    heartbeat.
    """
    run(cluster, killed(2), FOUR)


@DEFAULTS.clause(
    "multi_controller.initialize.restart",
    claim="multi-process.initialize-on-all-processes",
    expect=of_jax(
        every(*(prints_lines(n, "sum 3.0", "again None", "devices 2", "sum 3.0") for n in range(2)))
    ),
)
def restart(impl: Implementation, cluster: Cluster) -> None:
    """After a computation, a job shuts down, clears its backends and initializes again in the same
    processes.
    """
    run(
        cluster,
        f"""{BEGIN}{COMPUTE}
import jax.extend.backend

jax.distributed.shutdown()
jax.clear_caches()
jax.extend.backend.clear_backends()
say(f"down {{number}}")
wait_for("down 0")
attempt("again", initialize)
print("devices", jax.device_count())
{ARRAYS}""",
    )
