"""What becomes of a job whose processes part ways: other computations, or a process that goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.catalogue.clause import clause
from conformance.catalogue.family import family, table
from conformance.judging.columns import of_jax
from conformance.judging.expectation import Expectation, every
from conformance.sections.multi_controller.fates import (
    ALONE,
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    SHORT_S,
    at_once,
    by_heartbeat,
    ends,
    hung,
    run,
    says,
    terminated,
)

CLOSED = (
    r"ValueError UNKNOWN: Gloo all-reduce failed: .* Connection closed by peer \[127\.0\.0\.1\]:\d+"
)


# --- Other computations, or another order ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Apart:
    """Two computations, one of each process: `program` after what all begin with."""

    key: str
    title: str
    claim: str
    program: str
    expected: Expectation


APART: Mapping[str, Apart] = table(
    Apart(
        "other-operation",
        "One process sums where the other takes the greatest: both hang.",
        "multi-process.different-order-hangs",
        """
function = total if number == 0 else jax.jit(lambda x: x.max())
attempt("got", lambda: function(x))
attempt("sum", lambda: total(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-size",
        "One process sums one number where the other sums sixty-four: both hang.",
        "multi-process.different-order-hangs",
        """
many = made(np.ones((2, 64), np.float32), "a")
columns = jax.jit(lambda x: x.sum(0))
attempt("got", lambda: columns(x) if number else columns(many).sum())
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-kind",
        "One process reduces where the other gathers: both hang.",
        "multi-process.different-order-hangs",
        """
function = total if number == 0 else jax.jit(lambda x: x, out_shardings=spread())
attempt("got", lambda: function(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-product",
        "One process multiplies x @ y where the other multiplies y @ x: both hang.",
        "multi-process.different-order-hangs",
        """
square = jax.sharding.Mesh(np.array(jax.devices()).reshape(1, 2), ("a", "b"))
spec = jax.sharding.PartitionSpec
numbers = np.arange(16, dtype=np.float32).reshape(4, 4)
first = jax.device_put(numbers, jax.sharding.NamedSharding(square, spec("a", "b")))
second = jax.device_put(numbers, jax.sharding.NamedSharding(square, spec("b", None)))
pair = (second, first) if number else (first, second)
attempt("got", lambda: (pair[0] @ pair[1]).addressable_data(0))
attempt("sum", lambda: total(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "unchecked",
        "One process doubles where the other adds one: neither is told, and the sum mixes both.",
        "multi-process.order-unchecked",
        """
y = jax.jit((lambda x: x + 1) if number else (lambda x: x * 2))(x)
attempt("own", lambda: y.addressable_data(0))
attempt("mixed", lambda: total(y))
""",
        every(
            says(0, "sum 3.0", "own [2.]", "mixed 5.0"), says(1, "sum 3.0", "own [3.]", "mixed 5.0")
        ),
    ),
    Apart(
        "device-put",
        "Process 0 alone replicates an array with device_put: it hangs.",
        "multi-process.device-put-in-one-process",
        """
if number == 0:
    attempt("put", lambda: jax.device_put(x, spread()))
print("passed by")
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0", "passed by")),
    ),
)


@family(
    "multi_controller.apart.{apart}",
    apart=APART,
    claim=lambda apart: apart.claim,
    title="{apart.title}",
    left_out=OF_A_JOB,
    expect=lambda apart: of_jax(apart.expected),
    deadline_s=DEADLINE_S,
)
def apart(impl: Any, cluster: Any, apart: Apart) -> None:
    """The processes of a job compute something else at the same time."""
    run(cluster, BEGIN + COMPUTE + apart.program, quiet_s=SHORT_S)


# --- A process that goes --------------------------------------------------------------------------

KILLED, STOPPED = "SIGKILL", "SIGSTOP"


@dataclass(frozen=True, slots=True)
class Going:
    """How process `who` goes, one second after the first sum, and what the other does meanwhile."""

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
    leaves()
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
            # Whether the collective's error comes before the end is a race.
            terminated(1, rf"sum 3\.0( \| in it {CLOSED})?( \| later {CLOSED})?"),
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
        every(terminated(1, "sum 3.0"), at_once(1), says(0, "sum 3.0")),
    ),
    Going(
        "exits-between",
        "Process 1 ends by os._exit: process 0 is ended when a heartbeat was missed.",
        1,
        LEAVE,
        WAIT,
        every(terminated(0, "sum 3.0"), by_heartbeat(0), says(1, "sum 3.0")),
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
        WAIT,
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
        "raises-between",
        "Process 1 raises to the top: nobody notices, and it ends when process 0 does.",
        1,
        RAISE,
        WAIT,
        every(
            says(0, "sum 3.0", "done"),
            ends(1, r"exit 1 \| sum 3.0 \| ValueError: mine", "ends with its own error"),
        ),
    ),
    Going(
        "first-raises-between",
        "Process 0 raises to the top: nobody notices, and it ends when process 1 does.",
        0,
        RAISE,
        WAIT,
        every(
            says(1, "sum 3.0", "done"),
            ends(0, r"exit 1 \| sum 3.0 \| ValueError: mine", "ends with its own error"),
        ),
    ),
    Going(
        "raises-inside",
        "Process 1 raises to the top while process 0 is in a collective: both hang.",
        1,
        RAISE,
        COLLECTIVE,
        every(
            hung(0, "sum 3.0"),
            ends(1, r"hangs \| sum 3.0 \| ValueError: mine", "hangs at its exit"),
        ),
    ),
    Going(
        "returns-between",
        "Process 1 comes to its end early: nobody notices, and it ends when process 0 does.",
        1,
        RETURN,
        WAIT,
        every(says(0, "sum 3.0", "done"), says(1, "sum 3.0", "done")),
    ),
    Going(
        "returns-inside",
        "Process 1 comes to its end while process 0 is in a collective: both hang.",
        1,
        RETURN,
        COLLECTIVE,
        every(hung(0, "sum 3.0"), ends(1, r"hangs \| sum 3.0 \| done", "hangs at its exit")),
    ),
)


@family(
    "multi_controller.leaving.{going}",
    going=GOING,
    claim="pmap-silence.process-that-goes",
    title="{going.title}",
    left_out=OF_A_JOB,
    expect=lambda going: of_jax(going.expected),
    deadline_s=DEADLINE_S,
)
def leaving(impl: Any, cluster: Any, going: Going) -> None:
    """A process of a job goes, and the others are left."""
    run(cluster, going.program)


# --- Signals and what is meant to help ------------------------------------------------------------

TERMINATE = """
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(2)
print("done", flush=True)
"""


@clause(
    "multi_controller.leaving.sigterm",
    claim="pmap-silence.sigterm",
    left_out=OF_A_JOB,
    expect=of_jax(ends(0, r"SIGTERM \| sum 3.0", "is ended by SIGTERM, as without JAX")),
    deadline_s=DEADLINE_S,
)
def sigterm(impl: Any, cluster: Any) -> None:
    """SIGTERM ends a process that has called initialize."""
    run(cluster, BEGIN + COMPUTE + TERMINATE, ALONE)


@clause(
    "multi_controller.leaving.sigterm-without-preemption",
    claim="pmap-silence.sigterm",
    left_out=OF_A_JOB,
    expect=of_jax(ends(0, r"SIGTERM \| sum 3.0", "is ended by SIGTERM, as without JAX")),
    deadline_s=DEADLINE_S,
)
def sigterm_without_preemption(impl: Any, cluster: Any) -> None:
    """With jax_enable_preemption_service=False SIGTERM ends a process that has initialized."""
    program = BEGIN + COMPUTE + TERMINATE
    run(cluster, program, ALONE, JAX_ENABLE_PREEMPTION_SERVICE="0")
