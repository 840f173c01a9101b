"""Launch a script as a job of several JAX processes, and return how it ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.spec.topology import Topology
from conformance.worker.folders import Scratch
from conformance.worker.ports import ReservedPort
from harness.targets.platforms import Platform
from harness.targets.target import Target
from harness.usercode.ending import Job, Outcome
from harness.usercode.hosts import HostProcesses, Hosts, host_processes
from harness.usercode.joining import process_variables
from harness.usercode.leftovers import VARIABLE, end_leftovers
from harness.usercode.printing import Printer
from harness.usercode.processes import POLL_S, Processes, Program

GRACE_S = 10.0  # for the others to end by themselves, once a process has failed
INTERRUPTED_S = 5.0  # for all to end, once SIGINT was sent to them


@dataclass(frozen=True, slots=True)
class Launch:
    """What to launch: a program, on how many processes of which devices, and for how long.

    `devices` are the variables that give each process its own devices; empty on CPU. Without
    `deadline_s` a job may run for ever; `grace_s` is how long it may continue after a failure.
    Without `hosts` it runs on this machine.
    """

    program: Program
    target: Target
    topology: Topology
    platform: Platform
    devices: Sequence[Mapping[str, str]] = ()
    deadline_s: float | None = None
    grace_s: float = GRACE_S
    hosts: Hosts | None = None


def launch(
    plan: Launch,
    printer: Printer,
    environment: Mapping[str, str] = os.environ,
    progress: Callable[[str], None] = lambda _: None,
) -> Job:
    """Run the job to its end, a failure, its deadline or an interrupt; no process is left.

    An interrupt (SIGINT) ends it with the outcome INTERRUPTED and with stacks; a second one raises
    KeyboardInterrupt. HostsDown if its hosts cannot start it.
    """
    with (
        Scratch("launch") as folder,
        _processes(plan, printer, environment, folder, progress) as processes,
    ):
        try:
            outcome = _await(plan, processes)
        except KeyboardInterrupt:
            outcome = _interrupt(processes)
        processes.end()
        processes.finish()
        return _job(plan, processes, outcome)


def _processes(
    plan: Launch,
    printer: Printer,
    environment: Mapping[str, str],
    folder: Path,
    progress: Callable[[str], None],
) -> contextlib.AbstractContextManager[Processes | HostProcesses]:
    if plan.hosts is None:
        return _processes_here(plan, printer, environment, folder)
    return host_processes(
        plan.hosts, plan.program, plan.topology, plan.platform, printer, folder, progress
    )


@contextlib.contextmanager
def _processes_here(
    plan: Launch, printer: Printer, environment: Mapping[str, str], folder: Path
) -> Iterator[Processes]:
    """Yield the processes of a job on this machine; none of them is left afterwards."""
    port = ReservedPort()
    mark = {VARIABLE: secrets.token_hex(8)}
    own = plan.devices or [{}] * plan.topology.processes
    environments = [
        process_variables(environment, plan.topology, n, port.address, plan.platform, devices)
        | mark
        for n, devices in enumerate(own)
    ]
    processes = None
    try:
        processes = Processes(plan.program, environments, printer, folder)
        yield processes
    finally:
        if processes is not None:
            processes.close()
        end_leftovers(mark[VARIABLE])
        port.close()


def _await(plan: Launch, processes: Processes | HostProcesses) -> Outcome:
    """Wait for the end and return it; after a failure or a hang other processes still run."""
    deadline = None if plan.deadline_s is None else processes.began + plan.deadline_s
    while not processes.over and not processes.failed:
        processes.watch(POLL_S)
        if deadline is not None and time.monotonic() > deadline:
            processes.ask_stacks()
            return Outcome.HUNG
    until = time.monotonic() + plan.grace_s
    while not processes.over and time.monotonic() < until:
        processes.watch(POLL_S)
    processes.ask_stacks()
    return Outcome.FAILED if processes.failed else Outcome.SUCCEEDED


def _interrupt(processes: Processes | HostProcesses) -> Outcome:
    """End all processes as Ctrl-C would, after each has written its stacks."""
    processes.ask_stacks()
    processes.interrupt()
    until = time.monotonic() + INTERRUPTED_S
    while not processes.over and time.monotonic() < until:
        processes.watch(POLL_S)
    return Outcome.INTERRUPTED


def _job(plan: Launch, processes: Processes | HostProcesses, outcome: Outcome) -> Job:
    return Job(
        outcome,
        str(plan.topology),
        plan.target.spec,
        time.monotonic() - processes.began,
        tuple(processes.records()),
        plan.deadline_s,
    )
