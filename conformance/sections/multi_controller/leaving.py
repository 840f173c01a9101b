"""The fate of a job when one of its processes ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    ALONE,
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    at_once,
    by_heartbeat,
    ends,
    hung,
    prints_lines,
    run,
    terminated,
)
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.worker.protocols import Cluster, Implementation

CLOSED = (
    r"ValueError UNKNOWN: Gloo all-reduce failed: .* Connection closed by peer \[127\.0\.0\.1\]:\d+"
)
# Whether the collective's error comes before the end is a race.
CLOSED_OR_ENDED = rf"sum 3\.0( \| in it {CLOSED})?( \| later {CLOSED})?"

DEFAULTS = Defaults(
    on_cpu=True, claim="pmap-silence.sigterm", left_out=OF_A_JOB, deadline_s=DEADLINE_S
)


# --- A process that goes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Going:
    """How process `who` ends, one second after the first sum, and what the other does meanwhile."""

    key: str
    title: str
    who: int
    how: str
    meanwhile: str
    expected: Expectation

    @property
    def program(self) -> str:
        """The whole of it."""
        return (
            BEGIN
            + COMPUTE
            + f"""
if number == {self.who}:
    time.sleep(1)
    {self.how}
else:
    {self.meanwhile}
print("done", flush=True)
"""
        )


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"
RAISE = 'raise ValueError("mine")'
RETURN = "pass"
LEAVE = "os._exit(0)"

WAIT = "time.sleep(10)"  # two timeouts of the heartbeat
# Three: where process 0 stops, JAX 0.8.2 ends the other after two, all others after one.
WAIT_LONGER = "time.sleep(16)"
COLLECTIVE = 'attempt("in it", lambda: total(x)); attempt("later", lambda: total(x)); ' + WAIT

GOING: Mapping[str, Going] = table(
    Going(
        "killed-between",
        "Process 1 is killed between collectives: process 0 is ended when a heartbeat was missed.",
        1,
        KILL,
        WAIT,
        every(terminated(0, "sum 3.0"), by_heartbeat(0), ends(1, r"SIGKILL \| sum 3.0", "is gone")),
    ),
    Going(
        "first-killed-between",
        "Process 0 is killed between collectives: process 1 is ended at once.",
        0,
        KILL,
        WAIT,
        every(terminated(1, "sum 3.0"), at_once(1), ends(0, r"SIGKILL \| sum 3.0", "is gone")),
    ),
    Going(
        "killed-inside",
        "Process 1 is killed during a collective: it and later ones raise, until the heartbeat.",
        1,
        KILL,
        COLLECTIVE,
        every(
            terminated(0, "sum 3.0", f"in it {CLOSED}", f"later {CLOSED}"),
            by_heartbeat(0),
            ends(1, r"SIGKILL \| sum 3.0", "is gone"),
        ),
    ),
    Going(
        "first-killed-inside",
        "Process 0 is killed during a collective: process 1 is ended at once.",
        0,
        KILL,
        COLLECTIVE,
        every(
            terminated(1, CLOSED_OR_ENDED),
            at_once(1),
            ends(0, r"SIGKILL \| sum 3.0", "is gone"),
        ),
    ),
    Going(
        "first-exits-between",
        "Process 0 ends by os._exit: process 1 is ended at once.",
        0,
        LEAVE,
        WAIT,
        every(terminated(1, "sum 3.0"), at_once(1), prints_lines(0, "sum 3.0")),
    ),
    Going(
        "exits-between",
        "Process 1 ends by os._exit: process 0 is ended when a heartbeat was missed.",
        1,
        LEAVE,
        WAIT,
        every(terminated(0, "sum 3.0"), by_heartbeat(0), prints_lines(1, "sum 3.0")),
    ),
    Going(
        "exits-inside",
        "Process 1 ends by os._exit during a collective: all raise, until the heartbeat.",
        1,
        LEAVE,
        COLLECTIVE,
        every(
            terminated(0, "sum 3.0", f"in it {CLOSED}", f"later {CLOSED}"),
            by_heartbeat(0),
            prints_lines(1, "sum 3.0"),
        ),
    ),
    Going(
        "first-exits-inside",
        "Process 0 ends by os._exit during a collective: process 1 is ended at once.",
        0,
        LEAVE,
        COLLECTIVE,
        every(terminated(1, CLOSED_OR_ENDED), at_once(1), prints_lines(0, "sum 3.0")),
    ),
    Going(
        "stopped-between",
        "Process 1 stops between collectives: process 0 is ended when a heartbeat was missed.",
        1,
        STOP,
        WAIT,
        every(terminated(0, "sum 3.0"), by_heartbeat(0), hung(1, "sum 3.0")),
    ),
    Going(
        "first-stopped-between",
        "Process 0 stops between collectives: process 1 is ended when a heartbeat was missed.",
        0,
        STOP,
        WAIT_LONGER,
        every(terminated(1, "sum 3.0"), by_heartbeat(1), hung(0, "sum 3.0")),
    ),
    Going(
        "stopped-inside",
        "Process 1 stops before a collective: process 0 waits in it, and is ended by a heartbeat.",
        1,
        STOP,
        COLLECTIVE,
        every(terminated(0, "sum 3.0"), by_heartbeat(0), hung(1, "sum 3.0")),
    ),
    Going(
        "first-stopped-inside",
        "Process 0 stops before a collective: process 1 waits in it, and is ended by a heartbeat.",
        0,
        STOP,
        COLLECTIVE,
        every(terminated(1, "sum 3.0"), by_heartbeat(1), hung(0, "sum 3.0")),
    ),
    Going(
        "raises-between",
        "Process 1 raises an error that nothing catches: process 0 continues, and "
        "process 1 exits when it does.",
        1,
        RAISE,
        WAIT,
        every(
            prints_lines(0, "sum 3.0", "done"),
            ends(1, r"exit 1 \| sum 3.0 \| ValueError: mine", "ends with its own error"),
        ),
    ),
    Going(
        "first-raises-between",
        "Process 0 raises an error that nothing catches: process 1 continues, and "
        "process 0 exits when it does.",
        0,
        RAISE,
        WAIT,
        every(
            prints_lines(1, "sum 3.0", "done"),
            ends(0, r"exit 1 \| sum 3.0 \| ValueError: mine", "ends with its own error"),
        ),
    ),
    Going(
        "raises-inside",
        "Process 1 raises an error that nothing catches while process 0 is in a "
        "collective: both hang.",
        1,
        RAISE,
        COLLECTIVE,
        every(
            hung(0, "sum 3.0"),
            ends(1, r"hangs \| sum 3.0 \| ValueError: mine", "hangs at its exit"),
        ),
    ),
    Going(
        "first-raises-inside",
        "Process 0 raises an error that nothing catches while process 1 is in a "
        "collective: both hang.",
        0,
        RAISE,
        COLLECTIVE,
        every(
            hung(1, "sum 3.0"),
            ends(0, r"hangs \| sum 3.0 \| ValueError: mine", "hangs at its exit"),
        ),
    ),
    Going(
        "returns-between",
        "Process 1 reaches its end early: process 0 continues, and process 1 exits when it does.",
        1,
        RETURN,
        WAIT,
        every(prints_lines(0, "sum 3.0", "done"), prints_lines(1, "sum 3.0", "done")),
    ),
    Going(
        "first-returns-between",
        "Process 0 reaches its end early: process 1 continues, and process 0 exits when it does.",
        0,
        RETURN,
        WAIT,
        every(prints_lines(0, "sum 3.0", "done"), prints_lines(1, "sum 3.0", "done")),
    ),
    Going(
        "returns-inside",
        "Process 1 reaches its end while process 0 is in a collective: both hang.",
        1,
        RETURN,
        COLLECTIVE,
        every(hung(0, "sum 3.0"), ends(1, r"hangs \| sum 3.0 \| done", "hangs at its exit")),
    ),
    Going(
        "first-returns-inside",
        "Process 0 reaches its end while process 1 is in a collective: both hang.",
        0,
        RETURN,
        COLLECTIVE,
        every(hung(1, "sum 3.0"), ends(0, r"hangs \| sum 3.0 \| done", "hangs at its exit")),
    ),
)


@DEFAULTS.family(
    "multi_controller.leaving.{going}",
    going=GOING,
    claim="pmap-silence.process-that-goes",
    title="{going.title}",
    expect=lambda going: of_jax(going.expected),
)
def leaving(impl: Implementation, cluster: Cluster, going: Going) -> None:
    """A process of a job goes, and the others are left."""
    run(cluster, going.program)


# --- Signals and what is meant to help ------------------------------------------------------------

TERMINATE = """
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(2)
print("done", flush=True)
"""


@DEFAULTS.clause(
    "multi_controller.leaving.sigterm",
    expect=of_jax(ends(0, r"SIGTERM \| sum 3.0", "is ended by SIGTERM, as without JAX")),
)
def sigterm(impl: Implementation, cluster: Cluster) -> None:
    """SIGTERM ends a process that has called initialize."""
    run(cluster, BEGIN + COMPUTE + TERMINATE, ALONE)


@DEFAULTS.clause(
    "multi_controller.leaving.sigterm-without-preemption",
    expect=of_jax(ends(0, r"SIGTERM \| sum 3.0", "is ended by SIGTERM, as without JAX")),
)
def sigterm_without_preemption(impl: Implementation, cluster: Cluster) -> None:
    """With jax_enable_preemption_service=False SIGTERM ends a process that has initialized."""
    program = BEGIN + COMPUTE + TERMINATE
    run(cluster, program, ALONE, JAX_ENABLE_PREEMPTION_SERVICE="0")
