"""N worker processes of one target as one JAX job, and how a case runs on them.

A case ends in one of two ways: every process has reported an observation and is ready for the next
case, or there is a fault that names which process did what. After a fault the cluster is closed;
nothing runs on what is left of it.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from conformance.model.verdicts import Verdict
from conformance.spec import observation
from conformance.spec.names import CPU
from conformance.spec.topology import Topology
from conformance.worker import deadlines
from conformance.worker.starving import Delays, starved
from harness.clusters import postmortem
from harness.clusters.connection import Trouble, TroubleKind, WorkerConnection
from harness.clusters.hub import Hub
from harness.clusters.launchers import Launcher, Port, Started, TargetDown
from harness.clusters.postmortem import ClusterFault, ending


class ClusterDown(Exception):
    """A cluster failed to start; `fault` names the process and the reason."""

    def __init__(self, fault: ClusterFault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Case:
    """What to run: a clause under an implementation, with JSON parameters and a deadline.

    `looks_at_compiled`: it needs a cluster that compiles as a user's process does.
    """

    clause: str
    implementation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = deadlines.CASE_S
    looks_at_compiled: bool = False


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Observations as the workers sent them, by process; or the fault that ended the case.

    `mapped` lists the kinds of all maps that were made, including those of processes that died;
    `cpu_seconds` is the CPU time of the probe in all processes that reported it; `unharmed` says
    whether each process reported that the errors of its steps left nothing behind.
    """

    observations: tuple[Mapping[str, Any], ...]
    fault: ClusterFault | None
    seconds: float
    probe_seconds: float
    mapped: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    unharmed: bool = False

    @property
    def clean(self) -> bool:
        """Return whether the cluster may run another case: no fault, and every step returned a
        value, or the same steps raised in all processes and left nothing behind.
        """
        if self.fault is not None:
            return False
        raised = [
            [step["name"] for step in one["steps"] if step["outcome"] != observation.RETURNED]
            for one in self.observations
        ]
        return not any(raised) or (self.unharmed and all(one == raised[0] for one in raised))


class Cluster:
    """A started cluster; `facts` describes what runs in it, `cases` counts the cases it has run.

    `variables` are each process's own environment variables, such as those that select its devices;
    with `as_by_default`, what cases compile may be looked at.
    ClusterDown if it does not start within `start_timeout_s`; TargetDown if its launcher cannot
    start processes.
    """

    def __init__(
        self,
        launcher: Launcher,
        hub: Hub,
        topology: Topology,
        platform: str = CPU,
        start_timeout_s: float = deadlines.CLUSTER_START_S,
        variables: Sequence[Mapping[str, str]] = (),
        *,
        as_by_default: bool = False,
    ) -> None:
        self.topology = topology
        self.cases = 0
        self._up = False
        self._numbers = itertools.count(1)
        self._workers = [WorkerConnection(index) for index in range(topology.processes)]
        self._process: Started | None = None
        self._port: Port | None = None
        deadline = time.monotonic() + start_timeout_s
        launcher.warm_up()
        try:
            self._port = launcher.reserve() if topology.processes > 1 else None
            settings = self._settings(platform, variables, as_by_default)
            self._process = launcher.start(settings)
            self._gather([one["place"] for one in settings], hub, deadline)
        except TargetDown as down:
            fault = self._fault_of_loss(down)
            self.close()
            raise ClusterDown(fault) from down
        except BaseException:
            self.close()
            raise
        self._up = True

    @property
    def facts(self) -> Mapping[str, Any]:
        """Versions and devices of the running workers, as process 0 reports them
        (`worker.facts`).
        """
        return self._workers[0].facts

    def run(self, case: Case) -> CaseResult:
        """Run one case on all processes at once; return when all are done, or one has failed."""
        self.cases += 1
        name = str(next(self._numbers))
        order = {
            "case": name,
            "clause": case.clause,
            "implementation": case.implementation,
            "parameters": dict(case.parameters),
            "deadline_s": case.deadline_s + deadlines.STARVED_MOST_S + deadlines.BARRIER_S,
        }
        began = time.monotonic()
        try:
            self._started.mark()
            for worker in self._workers:
                worker.begin(order)
            fault = self._await(name, began + case.deadline_s, case.deadline_s)
        except TargetDown as down:
            fault = self._fault_of_loss(down)
        seen = [w.observation for w in self._workers if w.observation is not None]
        return CaseResult(
            tuple(seen),
            fault,
            time.monotonic() - began,
            max((float(o["seconds"]) for o in seen), default=0.0),
            tuple(sorted({kind for w in self._workers for kind in w.mapped})),
            sum(float(o.get("cpu_seconds", 0.0)) for o in seen),
            all(w.unharmed for w in self._workers),
        )

    def close(self) -> None:
        """End every process and release what they held."""
        if self._process is not None:
            with contextlib.suppress(TargetDown):  # then its workers are gone as well
                self._process.kill(deadlines.KILL_S)
        for worker in self._workers:
            if worker.channel is not None:
                worker.channel.close()
        if self._port is not None:
            self._port.close()

    @property
    def _started(self) -> Started:
        assert self._process is not None
        return self._process

    def _settings(
        self, platform: str, variables: Sequence[Mapping[str, str]], as_by_default: bool
    ) -> list[dict[str, Any]]:
        token, own = secrets.token_hex(8), variables or [{}] * self.topology.processes
        return [
            {
                "place": f"{token}-{process}",
                "process": process,
                "topology": str(self.topology),
                "platform": platform,
                "variables": dict(devices),
                "as_by_default": as_by_default,
                "coordinator": self._port.address if self._port else None,
            }
            for process, devices in zip(range(self.topology.processes), own, strict=True)
        ]

    def _gather(self, places: Sequence[str], hub: Hub, deadline: float) -> None:
        """Wait until every process has connected and then reported that it is ready."""
        for worker, place in zip(self._workers, places, strict=True):
            while worker.channel is None:
                arrived = hub.wait_for(place, deadlines.POLL_S)
                if arrived is not None:
                    worker.channel = arrived[0]
                elif time.monotonic() > deadline:
                    raise ClusterDown(self._fault_of_lateness(worker.index))
                elif self._started.exits():
                    raise ClusterDown(self._fault_of_start(worker.index))
        while not all(w.ready for w in self._workers):
            self._receive(deadline)
            if all(w.ready for w in self._workers):
                return
            if self._started.exits() or any(w.trouble for w in self._workers):
                waiting = next(w.index for w in self._workers if not w.ready)
                raise ClusterDown(self._fault_of_start(waiting))
            if time.monotonic() > deadline:
                raise ClusterDown(self._fault_of_lateness(None))

    def _await(self, name: str, deadline: float, deadline_s: float) -> ClusterFault | None:
        began = looked = time.monotonic()
        before: list[Delays] = []
        while True:
            self._receive(time.monotonic() + deadlines.POLL_S, name)
            if all(w.ready for w in self._workers):
                return None
            if any(w.trouble for w in self._workers):
                return self._fault_of_trouble(name)
            now = time.monotonic()
            if now - looked >= deadlines.POLL_S:
                looked = now
                if now - began >= deadlines.SAMPLED_AFTER_S:
                    before = before or self._started.delays()
                for worker, written in zip(self._workers, self._started.written(), strict=True):
                    worker.look_for_flood(written)
            if now > deadline and now > deadline + self._starved(before):
                return self._fault_of_hang(deadline_s)

    def _starved(self, before: list[Delays]) -> float:
        """Return the seconds for which the processes were runnable but had no core: the case's
        grace time.
        """
        if not before:
            return 0.0
        return min(starved(before, self._started.delays()), deadlines.STARVED_MOST_S)

    def _receive(self, until: float, name: str | None = None) -> None:
        """Receive what the members have sent, waiting until `until` at the latest."""
        listening: dict[Connection, WorkerConnection] = {
            w.channel.connection: w
            for w in self._workers
            if w.channel is not None and not w.ready and not w.trouble
        }
        if not listening:
            return
        for connection in wait(list(listening), max(0.0, until - time.monotonic())):
            assert isinstance(connection, Connection)
            listening[connection].take(name)

    def _examine(self, first: int | None = None) -> tuple[postmortem.ProcessState, ...]:
        return postmortem.examine(self._started, self._workers, up=self._up, first=first)

    def _fault_of_loss(self, down: TargetDown) -> ClusterFault:
        states = postmortem.unseen(self._process, self._workers, up=self._up)
        return ClusterFault(Verdict.CRASHED, " ".join(str(down).split()), states)

    def _fault_of_lateness(self, index: int | None) -> ClusterFault:
        states = self._examine(index)
        detail = f"process {states[0].process} of {self.topology} never came up"
        return ClusterFault(Verdict.HUNG, detail, states)

    def _fault_of_start(self, index: int) -> ClusterFault:
        """Describe a process that died, or sent an invalid message, before the cluster was up."""
        time.sleep(deadlines.CRASH_GRACE_S)
        self._receive(time.monotonic())  # what those who died have said before
        ended = self._started.exits()
        troubles = {w.index: w.trouble for w in self._workers if w.trouble}
        first = ended[0].process if ended else next(iter(troubles), index)
        states = self._examine(first)
        trouble = troubles.get(first, Trouble(TroubleKind.CLOSED))
        how = str(trouble)
        if trouble.kind is TroubleKind.CLOSED and ended:
            how = ending(ended[0].code, states[0].stack)[0]
        detail = f"process {first} of {self.topology} {how} while the cluster came up"
        return ClusterFault(Verdict.CRASHED, detail, states)

    def _fault_of_trouble(self, name: str) -> ClusterFault:
        """Describe the first failure: wait a moment for the peers, then find who failed first."""
        self._started.exits()  # TargetDown, where it is a host that was lost, and before its peers
        until = time.monotonic() + deadlines.CRASH_GRACE_S
        # Whoever is in trouble already was so before those that it takes along.
        suspects = {w.index: w.trouble for w in self._workers if w.trouble}
        while time.monotonic() < until and not all(w.ready or w.trouble for w in self._workers):
            self._receive(until, name)
        codes = self._codes(time.monotonic() + deadlines.DEATH_S)
        ordinary = {TroubleKind.CLOSED, TroubleKind.RAISED}
        odd = [p for p, trouble in suspects.items() if trouble.kind not in ordinary]
        likely = [*odd, *(p for p in codes if p in suspects), *suspects]
        states = self._examine(likely[0])
        first = postmortem.failed_first(likely, codes, states)
        states = postmortem.at_front(first, states)
        stacks = {one.process: one.stack for one in states}
        ends = {p: ending(code, stacks[p])[0] for p, code in codes.items()}
        trouble = suspects.get(first, Trouble(TroubleKind.CLOSED))
        how = str(trouble)
        if trouble.kind is TroubleKind.CLOSED:
            how = ends.get(first, f"{trouble} and went on")
        rest = [f"process {p} {end}" for p, end in ends.items() if p != first]
        detail = f"process {first} {how} {postmortem.whereabouts(states[:1])}"
        detail += f"; then {', '.join(rest)}" if rest else ""
        return ClusterFault(Verdict.CRASHED, detail, states)

    def _codes(self, until: float) -> dict[int, int]:
        """Return exit codes in the order of the exits, once every process that disconnected has
        one.
        """
        gone = {
            w.index for w in self._workers if w.trouble and w.trouble.kind is TroubleKind.CLOSED
        }
        while True:
            codes = {one.process: one.code for one in self._started.exits()}
            if gone <= codes.keys() or time.monotonic() > until:
                return codes
            time.sleep(0.005)

    def _fault_of_hang(self, deadline_s: float) -> ClusterFault:
        states = self._examine()
        stuck = [w.index for w in self._workers if w.observation is None]
        odd = states[0]
        at = f"is in {postmortem.frame(odd.stack)}" if odd.stack.strip() else "gave no Python stack"
        detail = (
            f"no answer within {deadline_s:g} s from process{'es' if len(stuck) > 1 else ''} "
            f"{', '.join(map(str, stuck)) or 'none: all wait for each other'}; "
            f"process {odd.process} {at}; {postmortem.whereabouts(states)}"
        )
        return ClusterFault(Verdict.HUNG, detail, states)
