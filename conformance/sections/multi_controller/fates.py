"""Jobs of plain programs: what becomes of each process where a process of the job goes astray.

A cluster of the harness could not be used any more after that, so each job is a probe's own: a few
Pythons with a heartbeat that is short, as a user would start them. How JAX learned that a peer is
lost, it says itself in the message with which it ends a process: no clock is needed.
"""

from __future__ import annotations

import re

from conformance.sections.multi_controller import TEXT
from conformance.sections.multi_controller.plain_jobs import run_text
from conformance.spec.aspects import figure
from conformance.spec.expectation import OfEachStep, in_steps, noted
from conformance.spec.expected import Expectation
from conformance.spec.observation import Step
from conformance.spec.topology import Place, Topology
from conformance.worker.jobs import Ended
from conformance.worker.protocols import Cluster

ALONE, TWO, THREE = Topology(1, 2), Topology(2, 1), Topology(3, 1)
HEARTBEAT_S = 5
QUIET_S = 18.0  # more than three timeouts of the heartbeat, after which a lost peer is known
SHORT_S = 8.0  # if all processes live on: anything longer cannot be distinguished from a hang
DEADLINE_S = 240.0  # of a cell, in which the machine may be loaded; its job ends before it
OF_A_JOB = "the test starts its own processes"

FATAL = "Terminating process because the JAX distributed service detected fatal errors"

LEARNED = "learned by"  # how a process that JAX ended detected the loss of its peer
CONNECTION, HEARTBEAT = "its connection", "a missed heartbeat"
# JAX's texts after FATAL: a failed call, or missed heartbeats.
_LEARNED_BY = {
    "Failed to send RPC to coordination service": CONNECTION,
    "unhealthy (stopped sending heartbeats)": HEARTBEAT,
    "CoordinationService/Heartbeat": HEARTBEAT,
}

_RAISED = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception): .*)$", re.MULTILINE)

# What every program begins with: `attempt` says what came of a call, and goes on; `say` and
# `wait_for` put the processes' calls in order, however busy the machine is.
BEGIN = f"""
import os, signal, sys, time

import jax
import numpy as np

address, processes, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def initialize(processes=processes, number=number, **options):
    jax.distributed.initialize(
        address, processes, number, heartbeat_timeout_seconds={HEARTBEAT_S}, **options
    )


def attempt(what, function):
    try:
        print(f"{{what}} {{function()}}", flush=True)
    except Exception as error:
        print(what, type(error).__name__, *str(error).splitlines()[:1], flush=True)


def say(event):  # to the other processes, which share the folder
    open(event, "x").close()


def wait_for(*events):
    while not all(map(os.path.exists, events)):
        time.sleep(0.01)

"""

# A job that computes: an array over all devices, one row to each, and its sum.
ARRAYS = """
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("a",))


def spread(*spec):
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def made(values, *spec):
    return jax.make_array_from_callback(values.shape, spread(*spec), lambda at: values[at])


x = made(np.arange(1, 1 + jax.device_count(), dtype=np.float32), "a")
total = jax.jit(lambda x: x.sum())
attempt("sum", lambda: total(x))
"""
COMPUTE = "initialize()\n" + ARRAYS


def run(
    cluster: Cluster,
    program: str,
    job: Topology = TWO,
    *,
    quiet_s: float = QUIET_S,
    imported: bool = True,
    **variables: str,
) -> None:
    """Run a program as a job; a step for each of its processes notes how it ended and what it said.

    Where JAX ended it, how it learned of the lost peer is noted too.
    """
    ended = run_text(program, job, quiet_s=quiet_s, alone=True, imported=imported, **variables)
    for number, one in enumerate(ended):
        cluster.step(f"process {number}", lambda: None)
        cluster.note(TEXT, describe_end(one))
        if FATAL in one.err:
            cluster.note(LEARNED, learned_by(one.err))


def learned_by(err: str) -> str:
    """Return how JAX, which ended a process, detected that a peer is lost; empty if it does not
    say.
    """
    said = err.rpartition(FATAL)[2]
    return next((how for words, how in _LEARNED_BY.items() if words in said), "")


def describe_end(one: Ended) -> str:
    """Describe in one line how a process ended, its output, and what ended it."""
    said = [line for line in one.out.splitlines() if line]
    raised = _RAISED.findall(one.err)
    why = FATAL if FATAL in one.err else raised[-1] if raised else ""
    return " | ".join(part for part in (one.end, *said, why) if part)


def ends(process: int, pattern: str, said: str) -> OfEachStep:
    """Expect a process of the job to end as `pattern` says; `pattern` has to match the whole
    description.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None or TEXT not in step.extra:
            return False, str(step)
        text = step.extra[TEXT]
        return re.fullmatch(pattern, text) is not None, text

    only = (f"process {process}",)
    return OfEachStep(
        f"process {process} {said}", check_step, only, claims=frozenset({figure(TEXT)})
    )


def prints_lines(process: int, *lines: str) -> OfEachStep:
    """A process of the job ends with status 0 and says these lines."""
    text = " | ".join(("exit 0", *lines))
    return ends(process, re.escape(text), f"ends with status 0 and says {' | '.join(lines)!r}")


def hung(process: int, *lines: str) -> Expectation:
    """A process of the job that still runs when the job is ended, having said these lines."""
    text = re.escape(" | ".join(("hangs", *lines)))
    return ends(process, text, f"hangs, having said {' | '.join(lines)!r}")


def terminated(process: int, *lines: str) -> Expectation:
    """A process of the job that JAX ends, having said these lines (patterns)."""
    text = r" \| ".join(("exit 1", *lines, FATAL))
    return ends(process, text, "is ended by JAX, with status 1, since a peer is lost")


def at_once(process: int) -> Expectation:
    """It notices by its connection, before a heartbeat is missed."""
    return _learns(process, CONNECTION, "ends at once, as its connection is closed")


def by_heartbeat(process: int) -> Expectation:
    """Expect the process to end because a heartbeat was missed."""
    return _learns(process, HEARTBEAT, "ends when a heartbeat was missed")


def _learns(process: int, how: str, said: str) -> Expectation:
    part = noted(LEARNED, f"process {process} {said}", lambda _, seen: seen == how)
    return in_steps(part, f"process {process}")
