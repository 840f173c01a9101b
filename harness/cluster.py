"""N worker processes of one target as one JAX job, and how a case runs on them.

A case ends in one of two ways: every process reported an observation and said it is ready for the
next, or there is a fault that names what happened to which process. After a fault the cluster is
finished; nothing is ever run on what is left of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from conformance import observation
from conformance.names import CRASHED, HUNG
from conformance.topology import Topology
from harness import deadlines
from harness.channel import Channel, Rubbish
from harness.hub import Hub
from harness.launchers import Launcher, Started, TargetDown
from harness.launchers.local import tail
from harness.ports import ReservedPort

FLOOD_BYTES = 64 * 1024 * 1024  # of output of one process during one case
KEPT_LOG_BYTES = 1024 * 1024  # of a log between cases
STACK_BYTES = 16_000  # of all threads of a process

CLOSED = "closed its connection"
RAISED = "raised to the top"
PROBING = "in the probe"
MISSING = "did not come up"


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What one process was doing when its cluster faulted."""

    process: int
    state: str
    signal: str | None = None
    exit: int | None = None
    stack: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """`kind` is `crashed` or `hung`; `detail` one line; `processes` the odd one first."""

    kind: str
    detail: str
    processes: tuple[ProcessState, ...]


class ClusterDown(Exception):
    """A cluster did not come up; `fault` says which process and why."""

    def __init__(self, fault: ClusterFault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Case:
    """What to run: a clause under an implementation, with JSON parameters and a deadline."""

    clause: str
    implementation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = deadlines.CASE_S


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Observations as the workers sent them, by process; or the fault that ended the case.

    `mapped` are the kinds of all maps that were made, whether or not their process lived to tell.
    """

    observations: tuple[Mapping[str, Any], ...]
    fault: ClusterFault | None
    seconds: float
    probe_seconds: float
    mapped: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the cluster may run another case: no fault, and every step returned a value."""
        return self.fault is None and all(
            step["outcome"] == "returned" for o in self.observations for step in o["steps"]
        )


@dataclass
class _Member:
    """The controller's view of one worker during a case."""

    index: int
    channel: Channel
    log: Path
    stacks: Path
    log_start: int = 0
    observation: Mapping[str, Any] | None = None
    ready: bool = False
    trouble: str | None = None  # why it can't be waited for any more
    mapped: list[str] = field(default_factory=list)


class Cluster:
    """Started by `launcher`; `facts` says what really runs in it; `cases` counts what it ran."""

    def __init__(
        self,
        launcher: Launcher,
        hub: Hub,
        folder: Path,
        topology: Topology,
        platform: str = "cpu",
        start_timeout_s: float = deadlines.CLUSTER_START_S,
    ) -> None:
        self.topology = topology
        self.cases = 0
        self._up = False
        self.facts: dict[str, Any] = {}
        self._folder = folder / f"cluster-{secrets.token_hex(4)}"
        self._folder.mkdir(parents=True)
        self._port = ReservedPort() if topology.processes > 1 else None
        self._members: list[_Member] = []
        self._numbers = itertools.count(1)
        token = secrets.token_hex(8)
        settings = [self._settings(token, i, hub, platform) for i in range(topology.processes)]
        began = time.monotonic()
        self._started: Started | None = None
        try:
            self._started = launcher.start(settings)
            self._gather(settings, hub, began + start_timeout_s)
            self._up = True
        except BaseException:
            self.close()
            raise

    def run(self, case: Case) -> CaseResult:
        """Run one case on all processes at once and wait until all are done or one is not."""
        self.cases += 1
        name = str(next(self._numbers))
        order = {
            "case": name,
            "clause": case.clause,
            "implementation": case.implementation,
            "parameters": dict(case.parameters),
            "deadline_s": case.deadline_s + deadlines.BARRIER_S,
        }
        began = time.monotonic()
        for member in self._members:
            member.observation, member.ready, member.trouble = None, False, None
            member.mapped.clear()
            member.log_start = _start_log(member.log)
            try:
                member.channel.send(order)
            except OSError:
                member.trouble = CLOSED
        try:
            fault = self._await(name, began + case.deadline_s, case.deadline_s)
        except TargetDown as down:
            fault = ClusterFault(CRASHED, " ".join(str(down).split()), self._unseen())
        seen = [m.observation for m in self._members if m.observation is not None]
        return CaseResult(
            tuple(seen),
            fault,
            time.monotonic() - began,
            max((float(o["seconds"]) for o in seen), default=0.0),
            tuple(sorted({kind for m in self._members for kind in m.mapped})),
        )

    def close(self) -> None:
        """End every process and remove the cluster's files."""
        if self._started is not None:
            with contextlib.suppress(TargetDown):  # then its workers are gone as well
                self._started.kill(deadlines.KILL_S)
        for member in self._members:
            member.channel.close()
        if self._port is not None:
            self._port.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _settings(self, token: str, process: int, hub: Hub, platform: str) -> dict[str, Any]:
        return {
            "place": f"{token}-{process}",
            "process": process,
            "topology": str(self.topology),
            "platform": platform,
            "coordinator": self._port.address if self._port else None,
            "address": hub.address,
            "key": hub.key,
            "log": str(self._folder / f"process-{process}.log"),
            "stacks": str(self._folder / f"process-{process}.stacks"),
        }

    def _gather(self, settings: Sequence[Mapping[str, Any]], hub: Hub, deadline: float) -> None:
        """Wait until every process has said hello and then that it is ready."""
        assert self._started is not None
        for index, one in enumerate(settings):
            arrived = None
            while arrived is None:
                arrived = hub.wait_for(one["place"], deadlines.POLL_S)
                late = time.monotonic() > deadline
                if arrived is None and (late or self._started.exits()):
                    raise ClusterDown(self._fault_of_start(settings, index, late))
            log, stacks = Path(one["log"]), Path(one["stacks"])
            self._members.append(_Member(index, arrived[0], log, stacks))
        while not all(m.ready for m in self._members):
            self._receive(deadline)
            ended = self._started.exits()
            if ended or any(m.trouble for m in self._members) or time.monotonic() > deadline:
                if all(m.ready for m in self._members):
                    return
                late = not ended and not any(m.trouble for m in self._members)
                waiting = [m.index for m in self._members if not m.ready]
                first = None if late else waiting[0]
                raise ClusterDown(self._fault_of_start(settings, first, late))

    def _fault_of_start(
        self, settings: Sequence[Mapping[str, Any]], index: int | None, late: bool
    ) -> ClusterFault:
        assert self._started is not None
        logs = [Path(one["log"]) for one in settings]
        stacks = [Path(one["stacks"]) for one in settings]
        if late:
            states = self._states(logs, stacks, first=index)
            detail = f"process {states[0].process} of {self.topology} never came up"
            return ClusterFault(HUNG, detail, states)
        time.sleep(deadlines.CRASH_GRACE_S)
        self._receive(time.monotonic())  # what those who died have said before
        ended = self._started.exits()
        troubles = {m.index: m.trouble for m in self._members if m.trouble}
        first = ended[0].process if ended else next(iter(troubles), index or 0)
        how = troubles.get(first, CLOSED)
        if how == CLOSED and ended:
            how = _ending(ended[0].code)[0]
        detail = f"process {first} of {self.topology} {how} while the cluster came up"
        return ClusterFault(CRASHED, detail, self._states(logs, stacks, first=first))

    def _await(self, name: str, deadline: float, deadline_s: float) -> ClusterFault | None:
        looked = time.monotonic()
        while True:
            self._receive(min(deadline, time.monotonic() + deadlines.POLL_S), name)
            if all(m.ready for m in self._members):
                return None
            troubled = [m for m in self._members if m.trouble]
            now = time.monotonic()
            if troubled:
                return self._fault_of_trouble(name)
            if now - looked >= deadlines.POLL_S:
                looked = now
                for member in self._members:
                    written = _size(member.log) - member.log_start
                    if written > FLOOD_BYTES:
                        member.trouble = f"flooded its output: {written} bytes"
            if now > deadline:
                return self._fault_of_hang(deadline_s)

    def _receive(self, until: float, name: str = "") -> None:
        """Take what the members have sent; wait for it until `until` at the most."""
        listening: dict[Connection, _Member] = {
            m.channel.connection: m for m in self._members if not m.ready and not m.trouble
        }
        if not listening:
            return
        for connection in wait(list(listening), max(0.0, until - time.monotonic())):
            assert isinstance(connection, Connection)
            self._take(listening[connection], name)

    def _take(self, member: _Member, name: str) -> None:
        try:
            message = member.channel.receive()
        except EOFError:
            member.trouble = CLOSED
            return
        except Rubbish as rubbish:
            member.trouble = f"sent rubbish: {rubbish}"
            return
        if "failed" in message:
            member.trouble = f"{RAISED}: {str(message['failed']).strip().splitlines()[-1]}"
        elif not name and isinstance(message.get("ready"), dict):
            self.facts, member.ready = message["ready"], True
        elif name and message.get("case") == name and isinstance(message.get("mapped"), str):
            member.mapped.append(message["mapped"])
        elif name and message.get("case") == name and _is_observation(message, member.index):
            member.observation = message["observation"]
        elif name and message.get("case") == name and message.get("ready") is True:
            member.ready = member.observation is not None
            if not member.ready:
                member.trouble = "sent rubbish: it is ready but observed nothing"
        else:
            member.trouble = f"sent rubbish: an unexpected message {str(message)[:200]}"

    def _unseen(self) -> tuple[ProcessState, ...]:
        """What is known of the processes where nobody is left to ask about them."""
        return tuple(
            ProcessState(m.index, "ended with its zygote", log=tail(m.log, start=m.log_start))
            for m in self._members
        )

    def _fault_of_trouble(self, name: str) -> ClusterFault:
        """A process died or spoke nonsense: give its peers a moment, then say who was first."""
        assert self._started is not None
        until = time.monotonic() + deadlines.CRASH_GRACE_S
        # Whoever is in trouble already was so before those that it takes along.
        suspects = {m.index: str(m.trouble) for m in self._members if m.trouble}
        while time.monotonic() < until and not all(m.ready or m.trouble for m in self._members):
            self._receive(until, name)
        ended = self._ended([m for m in self._members if m.trouble], until)
        codes = dict(ended)
        odd = [p for p, trouble in suspects.items() if not trouble.startswith((CLOSED, RAISED))]
        first = [*odd, *(p for p in codes if p in suspects), *suspects][0]
        how = suspects[first]
        if how == CLOSED:
            how = _ending(codes[first])[0] if first in codes else f"{CLOSED} and went on"
        rest = [f"process {p} {_ending(code)[0]}" for p, code in ended if p != first]
        detail = f"process {first} {how}" + (f"; then {', '.join(rest)}" if rest else "")
        return ClusterFault(CRASHED, detail, self._states(first=first))

    def _ended(self, troubled: Sequence[_Member], until: float) -> list[tuple[int, int]]:
        assert self._started is not None
        gone = {m.index for m in troubled if m.trouble == CLOSED}
        while True:
            ended = [(e.process, e.code) for e in self._started.exits()]
            if gone <= {p for p, _ in ended} or time.monotonic() > until:
                return ended
            time.sleep(0.005)

    def _fault_of_hang(self, deadline_s: float) -> ClusterFault:
        states = self._states()
        stuck = [m.index for m in self._members if m.observation is None]
        odd = states[0]
        where = odd.stack.strip().splitlines()
        at = f"is in {_frame(where)}" if where else "gave no Python stack"
        detail = (
            f"no answer within {deadline_s:g} s from process{'es' if len(stuck) > 1 else ''} "
            f"{', '.join(map(str, stuck)) or 'none: all wait for each other'}; "
            f"process {odd.process} {at}"
        )
        return ClusterFault(HUNG, detail, states)

    def _states(
        self,
        logs: Sequence[Path] = (),
        stacks: Sequence[Path] = (),
        first: int | None = None,
    ) -> tuple[ProcessState, ...]:
        """What every process does now; `first`, else the odd one, comes first."""
        assert self._started is not None
        logs = logs or [m.log for m in self._members]
        stacks = stacks or [m.stacks for m in self._members]
        ended = {e.process: e.code for e in self._started.exits()}
        running = [i for i in range(self.topology.processes) if i not in ended]
        self._started.dump_stacks(running)
        _await_stacks([stacks[i] for i in running])
        starts = {m.index: m.log_start for m in self._members if m.log in logs}
        starts = {i: starts.get(i, 0) for i in range(self.topology.processes)}
        states = [
            self._state(i, ended.get(i), _stack(stacks[i]), tail(logs[i], start=starts[i]))
            for i in range(self.topology.processes)
        ]
        if first is not None:
            return tuple(sorted(states, key=lambda s: s.process != first))
        tops = [_frame(s.stack.splitlines()) for s in states]

        def oddness(pair: tuple[str, ProcessState]) -> tuple[bool, int, bool]:
            # Whoever is still in its probe keeps the others waiting; of those, whoever is where
            # the fewest are; of as many, whoever is not inside JAX.
            top, one = pair
            return one.state not in (PROBING, MISSING), tops.count(top), "/jax/" in top

        return tuple(s for _, s in sorted(zip(tops, states, strict=True), key=oddness))

    def _state(self, index: int, code: int | None, stack: str, log: str) -> ProcessState:
        if code is not None:
            text, name = _ending(code)
            return ProcessState(index, text, name, None if name else code, stack, log)
        member = self._members[index] if index < len(self._members) else None
        if member is None or not (self._up or member.trouble):
            doing = "came up" if member and member.ready else MISSING
        elif member.trouble:
            doing = member.trouble
        elif member.ready:
            doing = "finished the case"
        elif member.observation is not None:
            doing = "finished its probe, waits for its peers"
        else:
            doing = PROBING
        return ProcessState(index, doing, None, None, stack, log)


def _is_observation(message: Mapping[str, Any], index: int) -> bool:
    seen: Any = message.get("observation")
    try:
        observation.parse(seen)
        outcomes = {step["outcome"] for step in seen["steps"]}
        return (
            bool(seen["process"] == index)
            and float(seen["seconds"]) >= 0
            and outcomes <= {observation.RETURNED, observation.RAISED}
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


def _ending(code: int) -> tuple[str, str | None]:
    """A sentence's end and the signal's name."""
    if code >= 0:
        return f"exited with status {code}", None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}", name


def _frame(stack: Sequence[str]) -> str:
    """`file:line function` of the innermost frame of the main thread, of faulthandler's text."""
    for at, line in enumerate(stack):
        if "(most recent call first)" in line and "Current thread" in line:
            return stack[at + 1].strip() if at + 1 < len(stack) else ""
    return next((line.strip() for line in stack if line.strip().startswith("File")), "")


def _await_stacks(files: Sequence[Path]) -> None:
    """Wait until the stacks are written and grow no more."""
    deadline = time.monotonic() + deadlines.STACK_S
    sizes: list[int] = []
    while time.monotonic() < deadline:
        time.sleep(0.05)
        before, sizes = sizes, [_size(file) for file in files]
        if sizes == before and all(sizes):
            break


def _stack(file: Path) -> str:
    return tail(file, STACK_BYTES)


def _start_log(log: Path) -> int:
    """Where this case's output begins; a long log is emptied first (it is opened for appending)."""
    size = _size(log)
    if size > KEPT_LOG_BYTES:
        os.truncate(log, 0)
        return 0
    return size


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
