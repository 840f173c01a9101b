"""Requirements on every way to run a cluster: the verdicts of this machine's own clusters, a killed
agent as a fault that names its host, hosts that work again, and no leftovers.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import FAULTS, until

from conformance.catalogue import loading
from conformance.judging import deviations
from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.worker.jobs import found
from harness.running.cells import CellId
from harness.running.fleet import Fleet, HostFleet, Hosts
from harness.running.pool import Pool
from harness.running.runner import Asked, Runner
from harness.targets.target import provision

CATALOGUE = (FAULTS, "conformance.sections.errors")
TARGET = "current"

# Of clauses that need several processes, and of faults: each in the topologies that matter.
CELLS = tuple(
    CellId(clause, implementation, topology, TARGET)
    for clause, implementation, topology in (
        ("faults.none", names.NEW_PMAP, "2x2"),
        ("errors.lowered.several-processes-map", names.NEW_PMAP, "2x2"),
        ("errors.lowered.several-processes-psum", names.SHARD_MAP, "2x2"),
        ("errors.lowered.several-processes-psum", names.SHARD_MAP, "4x2"),
        ("faults.wrong-value", names.NEW_PMAP, "2x2"),
        ("faults.killed", names.NEW_PMAP, "2x2"),
        ("faults.none", names.NEW_PMAP, "1x8"),
    )
)
KILLED = {"number": int(signal.SIGKILL)}

STALLED_S = 90.0  # the case in which an agent is killed; it ends long before
WITHIN_S = 240.0  # interpreters import jax, on a loaded machine
GONE_S = 20.0


def needs(*programs: str, root: bool = False) -> None:
    """Skip where one of them is not on this machine, with its name."""
    absent = [name for name in programs if not found(name)]
    if absent:
        pytest.skip(f"{', '.join(absent)} is not on this machine's PATH")
    if root and os.geteuid() != 0:
        pytest.skip("needs root")


@dataclass(frozen=True)
class Told:
    """The parts of a cell that must be the same on every cluster: hosts are named elsewhere."""

    verdict: str
    reason: str
    observations: int
    processes: tuple[int, ...]


def verdicts(fleet: Fleet | None) -> dict[CellId, Told]:
    """The cells on clusters of `fleet`, or of this machine's own."""
    pool = Pool(CATALOGUE, fleet=fleet)
    try:
        runner = runner_on(pool)
        return {cell: _told(runner.run(cell)) for cell in CELLS}
    finally:
        pool.close()


def runner_on(pool: Pool) -> Runner:
    """A runner of the cells, judged as in any run."""
    clauses = dict(loading.load(CATALOGUE).clauses)
    clauses["faults.killed"] = dataclasses.replace(clauses["faults.killed"], parameters=KILLED)
    asked = {TARGET: Asked(TARGET, provision(TARGET))}
    return Runner(loading.Catalogue(clauses), deviations.load_all(), asked, pool)


def _told(record: Cell) -> Told:
    # Of a killed process's peers, those that die of it before they are looked at may differ.
    reason = re.sub(r"; then process .+", "", record.reason)
    states = record.fault.processes if record.fault else []
    return Told(
        record.verdict,
        reason,
        len(record.observations) if not record.fault else 0,
        tuple(one.process for one in states),
    )


def prove(
    hosts: Hosts, expected: Mapping[CellId, Told], revive: Callable[[], None] | None = None
) -> list[str]:
    """All that is to be shown, and what was told meanwhile.

    `revive` starts a new agent in place of the one that was lost, where no launcher does.
    """
    said: list[str] = []
    fleet = HostFleet(hosts, CATALOGUE, progress=said.append)
    port = fleet.hub.port
    try:
        assert verdicts(fleet) == expected, said
        _lose_one(fleet, port)
        if revive is not None:
            revive()
        again = run(fleet, "faults.none")
        assert (again["verdict"], again["fresh"]) == (Verdict.CONFORMS, True), again["reason"]
    finally:
        fleet.close()
    assert until(lambda: not agents(port), GONE_S), agents(port)
    return said


def run(fleet: Fleet, clause: str, deadline_s: float | None = None) -> dict[str, Any]:
    """One cell on a pool of its own."""
    pool = Pool(CATALOGUE, fleet=fleet)
    try:
        runner = runner_on(pool)
        runner.deadline_s = deadline_s
        return runner.run(CellId(clause, names.NEW_PMAP, "2x2", TARGET))
    finally:
        pool.close()


def _lose_one(fleet: Fleet, port: int) -> None:
    """Kill an agent while a case runs on it."""
    killed: list[int] = []

    def kill() -> None:
        if until(lambda: len(_workers(port)) == 2, WITHIN_S):
            agent = _workers(port)[-1].parent()
            assert agent is not None
            threading.Event().wait(2.0)  # for its case to begin
            killed.append(agent.pid)
            agent.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    record = run(fleet, "faults.stalls-in-collective", STALLED_S)
    thread.join()
    assert killed
    assert record.verdict == Verdict.CRASHED, record.reason
    assert re.match(r"host \S+ \(rank \d\) was lost: its agent went away", record.reason)
    assert record.seconds < STALLED_S / 2
    states = record.fault.processes
    assert re.match(r"ended with its host's agent \(on \S+ \(rank \d\)\)", states[0].state)


def agents(port: int) -> list[psutil.Process]:
    """The agents that dialled `port`, and their workers, which share their command line."""
    every = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "conformance.worker.agent" in words and "python" in Path(words[0]).name:
                every += [process] if any(w.endswith(f":{port}") for w in words) else []
    return every


def _workers(port: int) -> list[psutil.Process]:
    every = agents(port)
    pids = {one.pid for one in every}
    found = []
    for one in every:
        with suppress(psutil.Error):
            found += [one] if one.ppid() in pids else []
    return found


@contextmanager
def variables(changes: Mapping[str, str]) -> Iterator[None]:
    """These variables for this process, and so for what it starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setenv(name, value)
        yield


def prefixed(folder: Path, name: str, words: Sequence[str]) -> str:
    """A PATH in which the program `name` is called with `words` first."""
    real = found(name)
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {real} {" ".join(words)} "$@"\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
