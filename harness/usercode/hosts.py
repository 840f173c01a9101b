"""Start a job's processes on several hosts, through the launcher of a cluster.

Each host runs `harness.usercode.host_agent`. `HostProcesses` has the methods of `Processes`, so a
job on hosts is watched and ended like one of this machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from conformance.commandline.counting import counted
from conformance.spec.topology import Topology
from conformance.worker.channel import Channel, ProtocolError
from conformance.worker.deadlines import KILL_S, STACK_S
from harness.clusters.hub import Hub
from harness.clusters.launchers import TargetDown
from harness.clusters.launchers.hellos import spread
from harness.clusters.launchers.starting import Plan, Way, WayStarter
from harness.targets.platforms import Platform
from harness.targets.target import worker_path
from harness.usercode.ending import Process, Raised
from harness.usercode.host_agent import ENCODING, STREAMS
from harness.usercode.printing import Printer
from harness.usercode.processes import LAST_OUTPUT_S, POLL_S, Program

AGENT = "harness.usercode.host_agent"
# A host obeys an order within this: its own deadline, and a busy machine.
OBEYS_S = {"stacks": STACK_S + 5.0, "interrupt": 5.0, "end": KILL_S + LAST_OUTPUT_S + 5.0}
# Python's variables of the agent, which are not the script's.
_AGENT_VARIABLES = ("PYTHONPATH", "PYTHONSAFEPATH")


class HostsDown(ValueError):
    """Hosts did not connect, or refused to start the job; the text says which."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of a job: how many, their names if known, and the launcher that reaches them.

    `listen` is the address to which they connect, `reached_by` the one that they use for it, and
    `python` the Python of their agents.
    """

    count: int
    way: Way
    names: tuple[str, ...]
    listen: str
    reached_by: str
    python: Path
    within_s: float


@dataclass
class _Host:
    """A connected host, and what is known of its processes."""

    channel: Channel
    name: str
    rank: int
    coordinator: str
    numbers: list[int] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    lost: str = ""
    ended: bool = False

    def send(self, order: Mapping[str, Any]) -> None:
        """Send an order, unless the host is gone."""
        if not self.ended:
            with contextlib.suppress(OSError):
                self.channel.send(order)


@contextlib.contextmanager
def host_processes(
    hosts: Hosts,
    program: Program,
    topology: Topology,
    platform: Platform,
    printer: Printer,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[HostProcesses]:
    """Yield the processes of a job on hosts; all of them and the agents have ended afterwards.

    HostsDown if a host does not connect, or cannot start the program.
    """
    hub = Hub(hosts.listen.rpartition(":")[0], int(hosts.listen.rpartition(":")[2]))
    place = f"launch-{secrets.token_hex(4)}"
    plan = Plan(
        hosts.count,
        f"{hosts.reached_by}:{hub.port}",
        str(hosts.python),
        hosts.names,
        place,
        {"PYTHONPATH": str(worker_path()), "PYTHONSAFEPATH": "1"},
        AGENT,
    )
    starter = WayStarter(hosts.way, plan, os.environ, hub.key, folder)
    found: list[_Host] = []
    try:
        try:
            starter.start()
            _gather(hub, starter, plan, hosts, found, progress)
        except TargetDown as error:
            raise HostsDown(str(error)) from error
        processes = HostProcesses(
            _ordered(found, hosts.names), program, topology, platform, printer
        )
        try:
            yield processes
        finally:
            processes.close()
    finally:
        for one in found:
            one.channel.close()
        starter.close()
        hub.close()


def _gather(
    hub: Hub,
    starter: WayStarter,
    plan: Plan,
    hosts: Hosts,
    found: list[_Host],
    progress: Callable[[str], None],
) -> None:
    """Add each host that connects to `found`; HostsDown if some do not."""
    until = time.monotonic() + hosts.within_s
    while len(found) < hosts.count:
        arrived = hub.wait_for(plan.place, POLL_S)
        if arrived is not None:
            channel, hello = arrived
            rank = hello["rank"]
            name = hosts.names[rank] if rank is not None and rank < len(hosts.names) else ""
            found.append(
                _Host(channel, name or str(hello["host"]), rank or 0, str(hello["coordinator"]))
            )
            progress(f"host {found[-1].name} is connected")
        elif (why := starter.ended()) is not None:
            raise HostsDown(f"--launcher {hosts.way.key}: {why}")
        elif time.monotonic() > until:
            raise HostsDown(
                f"{len(found)} of {counted(hosts.count, 'host')} connected to {plan.controller} "
                f"within {hosts.within_s:g} s: check that they reach this address, or give another "
                "one with --listen"
            )


def _ordered(found: Sequence[_Host], names: Sequence[str]) -> list[_Host]:
    """Return hosts by rank, with names that differ; HostsDown if two have one rank."""
    ordered = sorted(found, key=lambda one: (one.rank, one.name))
    if len({one.rank for one in ordered}) < len(ordered):
        raise HostsDown("several hosts have one rank: let the launcher start one agent on each")
    if not names and len({one.name for one in ordered}) < len(ordered):
        for one in ordered:
            one.name = f"{one.name}/{one.rank}"
    return ordered


class HostProcesses:
    """The processes of one job on several hosts, from their start to `close`."""

    def __init__(
        self,
        hosts: Sequence[_Host],
        program: Program,
        topology: Topology,
        platform: Platform,
        printer: Printer,
    ) -> None:
        self.began = time.monotonic()
        self._hosts = hosts
        self._printer = printer
        for number, host in enumerate(spread(topology.processes, len(hosts))):
            hosts[host].numbers.append(number)
        printer.name_hosts([one.name for one in hosts for _ in one.numbers])
        mark = secrets.token_hex(8)
        for one in hosts:
            one.states = [_unknown(number) for number in one.numbers]
            one.send(
                {
                    "processes": one.numbers,
                    "coordinator": hosts[0].coordinator,
                    "topology": str(topology),
                    "platform": platform.name,
                    "python": str(program.python),
                    "script": program.script,
                    "arguments": list(program.arguments),
                    "module": program.module,
                    "folder": str(Path.cwd()),
                    "variables": {name: os.environ.get(name) for name in _AGENT_VARIABLES},
                    "mark": mark,
                }
            )

    def watch(self, timeout_s: float) -> None:
        """Print what the processes write and note their ends, for `timeout_s` at the most."""
        there = {one.channel.connection: one for one in self._hosts if not one.ended}
        if not there:
            time.sleep(min(timeout_s, POLL_S))
        for connection in wait(list(there), min(timeout_s, POLL_S)):
            self._receive(there[connection])  # type: ignore[index]

    def records(self) -> list[Process]:
        """Return how each process ended, or is so far."""
        return [
            _record(one, number, state)
            for one in self._hosts
            for number, state in zip(one.numbers, one.states, strict=True)
        ]

    @property
    def failed(self) -> bool:
        """Return whether any process has failed, or a host was lost."""
        return any(one.lost or any(s["failed"] for s in one.states) for one in self._hosts)

    @property
    def over(self) -> bool:
        """Return whether all have ended."""
        return all(one.ended or all(s["over"] for s in one.states) for one in self._hosts)

    def ask_stacks(self) -> None:
        """Have each process that runs write its Python stacks, and keep them."""
        self._order("stacks")

    def interrupt(self) -> None:
        """Send SIGINT to each process that runs, and to those of its group."""
        self._order("interrupt")

    def end(self) -> None:
        """End each process that runs, with all that it started."""
        self._order("end")

    def finish(self) -> None:
        """Do nothing: `end` has waited for the last output."""

    def close(self) -> None:
        """End what still runs."""
        self.end()

    def _order(self, order: str) -> None:
        """Give each host an order, and wait for its answers."""
        asked = [one for one in self._hosts if not one.ended and order not in one.done]
        for one in asked:
            one.done.discard(order)
            one.send({"do": order})
        until = time.monotonic() + OBEYS_S[order]
        while time.monotonic() < until:
            if all(one.ended or order in one.done for one in asked):
                break
            self.watch(POLL_S)
        if order != "end":
            for one in asked:
                one.done.discard(order)

    def _receive(self, host: _Host) -> None:
        try:
            self._take(host, host.channel.receive())
        except EOFError:
            host.ended = True
            if "end" not in host.done:
                host.lost = "its connection ended"
        except (ProtocolError, LookupError, TypeError, ValueError) as error:
            host.ended, host.lost = True, f"it sent an invalid message: {error}"

    def _take(self, host: _Host, message: Mapping[str, Any]) -> None:
        if "data" in message:
            number = message["process"]
            if number not in host.numbers or message["stream"] not in STREAMS:
                raise ValueError(f"output of process {number}")
            streams = self._printer.out if message["stream"] == "out" else self._printer.err
            streams[number].take(str(message["data"]).encode(ENCODING))
        elif "states" in message:
            if len(message["states"]) != len(host.numbers):
                raise ValueError("states of other processes")
            host.states = list(message["states"])
        elif "refused" in message:
            raise HostsDown(
                f"host {host.name} could not start the job: {message['refused']}: every host needs "
                "this folder, the script and the Python of --target at the same paths"
            )
        else:
            host.done.add(str(message["done"]))


def _unknown(number: int) -> dict[str, Any]:
    """Return the state of a process that has not been reported."""
    return {"failed": False, "over": False, "end": {"code": None, "seconds": 0.0}}


def _record(host: _Host, number: int, state: Mapping[str, Any]) -> Process:
    end = dict(state["end"])
    raised = end.get("raised")
    own = {
        "number": number,
        "raised": None if raised is None else Raised(**raised),
        "host": host.name,
        "lost": "" if state["over"] else host.lost,
    }
    return Process(**{**end, **own})
