"""What every process of a cluster was doing when it faulted, and who was the odd one.

Written for a reader who was not there: a state in words, the signal or exit status, the Python
stack, and the end of the output of each process.

That the first to end is the odd one rests on what JAX does when a process goes, which the clauses
`multi_controller.leaving.*` judge in each version: when process 0 goes the others are ended at
once (`first-killed-between`), when another goes they are after a heartbeat's timeout
(`killed-between`), and of one that raises nobody is told (`raises-between`). Which end is heard of
first depends on the machine, so one that JAX says it ended itself is not the odd one. That a
process which waits for its peers is not rests on `multi_controller.apart.*`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.worker.output import Evidence
from harness.clusters.connection import Trouble, WorkerConnection
from harness.clusters.launchers import Started

# What JAX says in the output of a process that it ends because another one is gone.
ENDED_BY_JAX = "Terminating process because the JAX distributed service detected fatal errors"

# The signals whose stacks faulthandler writes, in its words.
FATAL = {
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
    "Segmentation fault": "SIGSEGV",
}
_FATAL_ERROR = re.compile("Fatal Python error: (.+)")


class Activity(StrEnum):
    """What a process did that had not ended and was not in trouble, in words."""

    MISSING = "did not come up"
    UP = "came up"
    PROBING = "in the probe"
    WAITING = "finished its probe, waits for its peers"
    FINISHED = "finished the case"


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What one process was doing when its cluster failed.

    `steps` are the steps of its probe that it had finished, `in_step` the one it was in, if any.
    """

    process: int
    state: str
    signal: str | None = None
    exit: int | None = None
    stack: str = ""
    log: str = ""
    steps: tuple[str, ...] = ()
    in_step: str = ""


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """`kind` is `crashed` or `hung`; `detail` is one line; `processes` starts with the one that
    failed first.
    """

    kind: str
    detail: str
    processes: tuple[ProcessState, ...]


def examine(
    started: Started, workers: Sequence[WorkerConnection], *, up: bool, first: int | None = None
) -> tuple[ProcessState, ...]:
    """Return the state of every process, the one that failed first at the front.

    `first` names it if it is known. `up` says whether the cluster had started. Running processes
    are asked for their Python stacks.
    """
    ended = {one.process: one.code for one in started.exits()}
    evidence = started.evidence([w.index for w in workers if w.index not in ended])
    states = [
        _state(w, seen, started.host(w.index), ended.get(w.index), up)
        for w, seen in zip(workers, evidence, strict=True)
    ]
    if first is not None:
        return at_front(first, states)
    tops = [frame(s.stack) for s in states]
    # Whoever did not come up, or is still in its probe, keeps the others waiting.
    awaited = {
        w.index
        for w in workers
        if w.index not in ended and _doing(w, up) in {Activity.MISSING, Activity.PROBING}
    }

    def oddness(pair: tuple[str, ProcessState]) -> tuple[bool, int, bool]:
        # Of those who keep the others waiting, whoever is where the fewest are; of as many, whoever
        # is not inside JAX.
        top, one = pair
        return one.process not in awaited, tops.count(top), "/jax/" in top

    return tuple(s for _, s in sorted(zip(tops, states, strict=True), key=oddness))


def at_front(process: int, states: Iterable[ProcessState]) -> tuple[ProcessState, ...]:
    """Return states with that of `process` first, the others in their order."""
    return tuple(sorted(states, key=lambda one: one.process != process))


def failed_first(
    suspects: Sequence[int], ended: Iterable[int], states: Iterable[ProcessState]
) -> int:
    """Return the process that failed first: the first of `suspects`, then of those that `ended`,
    that JAX did not end because another was gone. If it ended all of them, the first suspect.
    """
    taken_along = {one.process for one in states if ENDED_BY_JAX in one.log}
    return min((*suspects, *ended), key=taken_along.__contains__)


def unseen(
    started: Started | None, workers: Sequence[WorkerConnection], *, up: bool
) -> tuple[ProcessState, ...]:
    """Return what is known of processes if some were lost (those first), or none was started."""
    if started is None:
        return tuple(ProcessState(w.index, Activity.MISSING) for w in workers)
    lost = started.lost()
    states = [
        _state(w, seen, started.host(w.index), None, up, lost.get(w.index))
        for w, seen in zip(workers, started.evidence([]), strict=True)
    ]
    return tuple(sorted(states, key=lambda s: s.process not in lost))


def ending(code: int, stack: str = "") -> tuple[str, str | None]:
    """Return a sentence's end and the signal's name for an exit code, negative for a signal.

    Of the fatal signals that `stack` names the first is the cause: faulthandler reads the stack of
    a thread that still runs, and may be ended by another signal.
    """
    if code >= 0:
        return f"exited with status {code}", None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name in FATAL.values():
        name = next((FATAL[one] for one in _FATAL_ERROR.findall(stack) if one in FATAL), name)
    return f"was killed by {name}", name


def frame(stack: str) -> str:
    """Return `File ..., line ... in function` of the innermost frame in faulthandler's text."""
    lines = stack.splitlines()
    for at, line in enumerate(lines):
        if "(most recent call first)" in line and "Current thread" in line:
            return lines[at + 1].strip() if at + 1 < len(lines) else ""
    return next((line.strip() for line in lines if line.strip().startswith("File")), "")


def whereabouts(states: Sequence[ProcessState]) -> str:
    """Describe in which step each process was, grouped by step."""
    found: dict[str, list[int]] = {}
    for one in sorted(states, key=lambda s: s.process):
        if one.in_step:
            where = f"in step “{one.in_step}”"
        elif one.steps:
            where = f"after step “{one.steps[-1]}”"
        else:
            where = "before any step"
        found.setdefault(where, []).append(one.process)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(
        f"process{'' if len(some) == 1 else 'es'} {', '.join(map(str, some))} {where}"
        for where, some in found.items()
    )


def _state(
    worker: WorkerConnection,
    seen: Evidence,
    host: str,
    code: int | None,
    up: bool,
    lost: str | None = None,
) -> ProcessState:
    text: str = lost or str(_doing(worker, up))
    name: str | None = None
    if code is not None:
        text, name = ending(code, seen.stacks)
    return ProcessState(
        worker.index,
        f"{text} (on {host})" if host else text,
        name,
        None if name else code,
        seen.stacks,
        seen.log,
        tuple(worker.finished),
        worker.in_step,
    )


def _doing(worker: WorkerConnection, up: bool) -> Trouble | Activity:
    if worker.trouble:
        return worker.trouble
    if not up:
        return Activity.UP if worker.ready else Activity.MISSING
    if worker.ready:
        return Activity.FINISHED
    return Activity.WAITING if worker.observation else Activity.PROBING
