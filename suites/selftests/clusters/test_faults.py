"""Faults: whatever a worker does wrong becomes a verdict, in time, and leaves nothing behind.

Real clusters run the clauses of `faulty.faults`, which break them on purpose. After each fault
the pool must hold no process but its zygote, and its next case must be clean on a fresh cluster.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import ENDS_S, FAULTS, HANGS_S, MARK, end, gone, marked, new_mark, pids, until

from conformance.catalogue import loading
from conformance.model.records import Cell, FaultProcess
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.observation import OUTSIDE
from conformance.spec.topology import Topology
from conformance.worker import deadlines
from conformance.worker.compiling import FLAG
from conformance.worker.ports import ReservedPort
from harness.clusters.cluster import Cluster, ClusterDown
from harness.clusters.hub import Hub
from harness.clusters.launchers import TargetDown
from harness.clusters.launchers.local import LocalLauncher, LocalProcesses
from harness.running.cells import CellId
from harness.running.pool import Pool
from harness.running.runner import Asked, Runner
from harness.targets.target import Target, provision, worker_environment

# After the deadline, stacks included; 0.2 s on an idle machine. What hangs here hangs for an hour,
# and JAX would end it after HEARTBEAT_S.
HUNG_LATE_S = 60.0

WAITS = "finished its probe, waits for its peers"
IN_PROBE = "in the probe"
THEN = r"(; then process \d .+)?"  # peers may already have died of it


class Bench:
    """A pool whose processes are marked, and a runner of the fault clauses on it."""

    def __init__(self, cache: Path) -> None:
        self.mark = new_mark()
        self._environment = pytest.MonkeyPatch()
        self._environment.setenv(MARK, self.mark)
        # Locks of its own: no other run of this machine is waited for.
        self._environment.setenv("PMAP_CONFORMANCE_CACHE", str(cache))
        self.target = provision("current")
        self.pool = Pool([FAULTS])
        self.facts: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        self.pool.close()
        self._environment.undo()

    def run(
        self,
        clause: str,
        parameters: Mapping[str, Any] | None = None,
        topology: str = "2x2",
        deadline_s: float | None = None,
        target: Target | None = None,
        programs: tuple[str, ...] = (),
    ) -> Cell:
        """The cell's record, as a run of the suites would write it."""
        clauses = {
            name: dataclasses.replace(one, parameters=dict(parameters or {}), programs=programs)
            for name, one in loading.load([FAULTS]).clauses.items()
        }
        asked = {"current": Asked("current", target or self.target)}
        facts = self.facts if target is None else {}
        runner = Runner(loading.Catalogue(clauses), [], asked, self.pool, deadline_s, facts=facts)
        return runner.run(CellId(f"faults.{clause}", names.NEW_PMAP, topology, "current"))

    def zygotes(self) -> set[int]:
        """Return the processes that may remain after a fault: this process's own children."""
        return {child.pid for child in psutil.Process().children()} & pids(self.mark)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("cache"))
    made.run("none")  # the zygote's start is not to be timed with a fault
    yield made
    made.close()
    nothing_left = gone(made.mark, ENDS_S)
    end(made.mark)
    assert nothing_left


@dataclass(frozen=True)
class Fault:
    """A faulty program and the expected report; `first` is the odd process."""

    clause: str
    verdict: str
    detail: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    topology: str = "2x2"
    deadline_s: float | None = None
    first: int = 1
    state: str = ""
    signal: str | None = None
    exit: int | None = None
    stack: str = ""
    log: str = ""
    others: str = ""
    others_stack: str = ""

    def __str__(self) -> str:
        values = [str(value) for value in self.parameters.values()]
        return "-".join([self.clause, *values, self.topology])


def killed(number: signal.Signals, **more: Any) -> Fault:
    parameters = {"number": int(number), **more.pop("parameters", {})}
    first = more.get("first", 1)
    # The interpreter reports those signals that it can still catch.
    stack = "" if number == signal.SIGKILL else r"Fatal Python error(.|\n)+ in killed\n"
    return Fault(
        "killed",
        Verdict.CRASHED,
        rf"process {first} was killed by {number.name}{THEN}",
        parameters,
        state=f"was killed by {number.name}",
        signal=number.name,
        stack=stack,
        log=r"about to die\n",
        **more,
    )


def invalid_message(kind: str, detail: str, **more: Any) -> Fault:
    return Fault(
        "invalid-message",
        Verdict.CRASHED,
        f"process 1 {detail}",
        {"kind": kind},
        **{"state": detail, "stack": r" in invalid_message\n", "others": WAITS, **more},
    )


def hung(clause: str, function: str, deadline_s: float, topology: str, **more: Any) -> Fault:
    last = Topology.parse(topology).processes - 1
    return Fault(
        clause,
        Verdict.HUNG,
        rf"no answer within {deadline_s:g} s from {more.pop('stuck')}; "
        rf"process {last} is in File \".+faults\.py\", line \d+ in {function}",
        topology=topology,
        deadline_s=deadline_s,
        first=last,
        state=IN_PROBE,
        stack=rf"most recent call first\):\n  File .+ in {function}\n",
        **more,
    )


IN_PSUM = {
    "others": IN_PROBE,
    "others_stack": r"/jax/(.|\n)+recording\.py\", line \d+ in step\n.+ in stalls_in_collective\n",
}

BROKEN: Sequence[Fault] = (
    killed(signal.SIGSEGV),
    killed(signal.SIGKILL),
    killed(signal.SIGABRT, topology="4x2", first=3),
    killed(signal.SIGKILL, parameters={"process": 0}, first=0),  # takes the coordinator along
    Fault(
        "exits",
        Verdict.CRASHED,
        rf"process 1 exited with status 3{THEN}",
        state="exited with status 3",
        exit=3,
    ),
    Fault(
        "exits",
        Verdict.CRASHED,
        "process 0 exited with status 3",
        topology="1x8",
        first=0,
        state="exited with status 3",
        exit=3,
    ),
    Fault(
        "system-exit",
        Verdict.CRASHED,
        "process 0 raised to the top: SystemExit: 5",
        topology="1x8",
        first=0,
        state=r"raised to the top: SystemExit: 5|exited with status 1",
        log=r"in system_exit\n(.|\n)*SystemExit: 5\n",
    ),
    Fault(
        "floods",
        Verdict.CRASHED,
        r"process 1 flooded its output: \d{8,} bytes",
        state=r"flooded its output: \d{8,} bytes",
        stack=r" in floods\n",
        log="(flood )+(flood)?",
        others=WAITS,
    ),
    invalid_message(
        "bytes", r"sent an invalid message: 11 bytes that are no JSON: b'\\x80\\x04\\x95 invalid'"
    ),
    invalid_message(
        "half", "sent an invalid message: the beginning of a message, and not its rest"
    ),
    invalid_message("length", "sent an invalid message: a message longer than 67108864 bytes"),
    invalid_message("deep", r"sent an invalid message: 100000 bytes that are no JSON: b'\[+'"),
    invalid_message("other", r"sent an unexpected message: \{'case': '0', 'ready': 'yes'\}"),
    invalid_message("observation", r"sent an unexpected message: \{'case': '1', 'observation'.+"),
    invalid_message("cut", "was killed by SIGKILL", signal="SIGKILL", stack="", others=""),
    Fault(
        "leaves-a-child",
        Verdict.CRASHED,
        rf"process [01] exited with status 4{THEN}",
        first=-1,
        state="exited with status 4",
        exit=4,
    ),
    hung("stalls-in-python", "stalls_in_python", 2, "1x8", stuck="process 0"),
    hung(
        "stalls-in-python",
        "stalls_in_python",
        3,
        "2x2",
        stuck="process 1",
        others=WAITS,
        others_stack=r"process\.py\", line \d+ in _meet\n",
    ),
    hung(
        "stalls-in-collective", "stalls_in_collective", 4, "2x2", stuck="processes 0, 1", **IN_PSUM
    ),
    hung(
        "stalls-in-collective",
        "stalls_in_collective",
        5,
        "4x2",
        stuck="processes 0, 1, 2, 3",
        **IN_PSUM,
    ),
    Fault(
        "killed",
        Verdict.HUNG,
        "no answer within 2 s from processes 0, 1; process 1 gave no Python stack",
        {"number": int(signal.SIGSTOP)},
        deadline_s=2,
        state=IN_PROBE,
        log=r"about to die\n",
        others=IN_PROBE,
    ),
)


# In which step the processes were: told with every fault, whatever else is.
ONE_PLACE = r"(before any step|(in|after) step “[^”]+”)"
SOME = rf"process(es)? [\d, ]+ {ONE_PLACE}"
WHERE = rf" {ONE_PLACE}(?=;|$)|; ({ONE_PLACE}|{SOME}(, {SOME})*)$"


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_fault_is_a_verdict_in_time_and_leaves_nothing(bench: Bench, broken: Fault) -> None:
    bench.pool.release()  # an invalid message names a cluster's first case
    record = bench.run(broken.clause, broken.parameters, broken.topology, broken.deadline_s)

    assert record.verdict == broken.verdict, record.reason
    said, places = re.subn(WHERE, "", record.reason)
    assert re.fullmatch(broken.detail, said)
    assert places == 1
    fault = record.fault
    assert (fault.kind, fault.detail) == (broken.verdict, record.reason)
    _check_states(broken, fault.processes)

    if broken.deadline_s is not None:  # who dies is not waited for: that would be called hung
        assert broken.deadline_s <= record.seconds < broken.deadline_s + HUNG_LATE_S

    assert len(bench.zygotes()) == 1
    assert until(lambda: pids(bench.mark) == bench.zygotes(), ENDS_S), marked(bench.mark)

    after = bench.run("none", topology=broken.topology)
    assert (after.verdict, after.fresh) == (Verdict.CONFORMS, True), after.reason


def _check_states(broken: Fault, states: Sequence[FaultProcess]) -> None:
    processes = Topology.parse(broken.topology).processes
    assert sorted(state.process for state in states) == list(range(processes))
    odd, *others = states
    assert broken.first in (odd.process, -1)
    assert re.fullmatch(broken.state, odd.state)
    assert odd.signal == broken.signal
    if broken.exit is not None:
        assert odd.exit == broken.exit
    assert re.search(broken.stack, odd.stack)
    assert re.search(broken.log, odd.log)
    for other in others:
        if broken.others:
            assert other.state == broken.others
            assert re.search(broken.others_stack or r"most recent call first", other.stack)


def test_all_processes_raise_to_the_top(bench: Bench) -> None:
    record = bench.run("system-exit")
    assert record.verdict == Verdict.CRASHED
    assert re.match(r"process [01] raised to the top: SystemExit: 5", record.reason)
    assert until(lambda: pids(bench.mark) == bench.zygotes(), ENDS_S)


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("wrong-value", "first call: .*3"),
        ("nothing-observed", "any step: the probe did not get there"),
        ("by-hand", "proof: none"),
        ("impostor", r"proof: jit\(shard_map\) -> NamedSharding"),
        ("raises", r"outside any step: .*raised RuntimeError .*raised on purpose"),
    ],
)
def test_what_proves_nothing_or_something_else_deviates(
    bench: Bench, clause: str, reason: str
) -> None:
    record = bench.run(clause)
    assert record.verdict == Verdict.DEVIATES
    assert re.match(reason, record.reason)
    assert record.fault is None
    assert len(record.observations) == 2


def test_nothing_wrong_conforms_and_keeps_its_cluster(bench: Bench) -> None:
    bench.pool.release()
    first, second = bench.run("none"), bench.run("none")
    assert [r.verdict for r in (first, second)] == [Verdict.CONFORMS] * 2
    assert [r.fresh for r in (first, second)] == [True, False]
    assert len(pids(bench.mark)) == 1 + 2


def test_the_compilers_options_are_the_defaults_where_they_are_looked_at(bench: Bench) -> None:
    """On one pool, one after the other, and in either order."""
    clauses = ("options", "options-looked-at", "options")
    quick, looked_at, again = (
        bench.run(clause, topology="1x8").observations[0]["steps"][0]["extra"]["options"]
        for clause in clauses
    )
    assert looked_at == options_of_a_process("")
    assert quick == again == options_of_a_process(FLAG)
    assert quick != looked_at


def options_of_a_process(flags: str) -> str:
    """Return the compiler's options of a new Python with these flags of XLA."""
    code = f"from {FAULTS} import compile_options; print(compile_options())"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=True,
    )
    return ran.stdout.strip()


def test_time_without_a_core_is_not_held_against_a_case(bench: Bench) -> None:
    working = bench.run("starves", {"work_s": 0.75, "rivals": 5}, "1x8", deadline_s=2)
    assert working.verdict == Verdict.CONFORMS, working.reason
    assert working.seconds > 2
    alone = bench.run("starves", {"work_s": 60.0, "rivals": 0}, "1x8", deadline_s=1)
    assert alone.verdict == Verdict.HUNG, alone.reason


def test_what_a_probe_raised_outside_its_steps_is_on_record(bench: Bench) -> None:
    failed = [f for f in bench.run("raises").findings if f.step == OUTSIDE]
    assert {f.process for f in failed} == {0, 1}
    for finding in failed:
        assert not finding.holds
        assert re.search("RuntimeError .*on purpose", finding.saw)


def test_a_case_that_raised_leaves_no_warm_cluster(bench: Bench) -> None:
    bench.run("raises")
    assert until(lambda: pids(bench.mark) == bench.zygotes(), ENDS_S)
    assert bench.run("none").fresh


def test_a_dead_zygote_is_a_crash_and_the_next_case_gets_another(bench: Bench) -> None:
    bench.run("none")
    (zygote,) = bench.zygotes()
    os.kill(zygote, signal.SIGKILL)
    assert until(lambda: not marked(bench.mark), ENDS_S), "its workers end with it"
    record = bench.run("none")
    assert record.verdict == Verdict.CRASHED
    assert re.match(r"the zygote of .+ went away|process \d was killed by", record.reason)
    assert bench.run("none").verdict == Verdict.CONFORMS
    assert len(bench.zygotes()) == 1
    assert zygote not in bench.zygotes()


def test_a_worker_that_dies_while_its_cluster_comes_up_is_a_verdict(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.pool.release()
    start = LocalLauncher.start

    def start_and_kill(
        launcher: LocalLauncher, settings: Sequence[Mapping[str, Any]]
    ) -> LocalProcesses:
        started = start(launcher, settings)
        os.kill(started.pids[1], signal.SIGKILL)
        return started

    monkeypatch.setattr(LocalLauncher, "start", start_and_kill)
    record = bench.run("none")
    assert record.verdict == Verdict.CRASHED
    wanted = "process 1 of 2x2 was killed by SIGKILL while the cluster came up"
    assert record.reason == wanted
    assert record.fault.processes[0].signal == "SIGKILL"
    assert until(lambda: pids(bench.mark) == bench.zygotes(), ENDS_S)
    monkeypatch.undo()
    assert bench.run("none").verdict == Verdict.CONFORMS


def test_a_clause_whose_program_is_absent_is_not_run(bench: Bench) -> None:
    record = bench.run("none", programs=("no-such-program",))
    wanted = (Verdict.NOT_RUN, "no-such-program is not on this machine's PATH")
    assert (record.verdict, record.reason) == wanted


def test_a_target_that_does_not_come_up_is_not_run(bench: Bench, tmp_path: Path) -> None:
    python = script(tmp_path, "echo no such luck >&2; exit 7")
    record = bench.run("none", target=Target("current", python))
    assert record.verdict == Verdict.NOT_RUN
    assert "status 7" in record.reason
    assert "no such luck" in record.reason


class Settings:
    """A launcher that hands its workers other settings than it was given."""

    def __init__(self, launcher: LocalLauncher, process: int, changes: Mapping[str, Any]) -> None:
        self._launcher = launcher
        self._process = process
        self._changes = changes

    def start(self, settings: Sequence[Mapping[str, Any]]) -> LocalProcesses:
        changed = [dict(one) for one in settings]
        changed[self._process].update(self._changes)
        return self._launcher.start(changed)

    def warm_up(self) -> None:
        self._launcher.warm_up()

    def reserve(self) -> ReservedPort:
        return self._launcher.reserve()

    def close(self) -> None:
        self._launcher.close()


@dataclass
class Place:
    """A folder in which a test starts its own targets and clusters."""

    mark: str
    hub: Hub
    folder: Path

    def launcher(self, python: Path, start_timeout_s: float) -> LocalLauncher:
        target = Target("current", python)
        environment = {
            **worker_environment(target, os.environ, catalogue=[FAULTS]),
            MARK: self.mark,
        }
        return LocalLauncher(python, environment, self.hub, self.folder, [FAULTS], start_timeout_s)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(new_mark(), Hub(), tmp_path)
    yield made
    made.hub.close()
    end(made.mark)


@pytest.fixture(scope="module")
def silent_hub() -> Iterator[str]:
    """An address where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def script(folder: Path, text: str) -> Path:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("text", "timeout_s", "says"),
    [
        ("sleep 3600", 1.5, r"did not answer within 1\.5 s(.|\n)+\(none\)"),
        ("trap '' TERM INT; while :; do sleep 3600; done", 1.5, r"did not answer within 1\.5 s"),
        ("sleep 3600 & exit 0", 60, r"ended with status 0 within 60 s(.|\n)+\(none\)"),
        ("echo '\377 garbage'; exit 7", 60, r"ended with status 7 within 60 s(.|\n)+ garbage\n"),
        ("kill -SEGV $$", 60, r"ended with status -11 within 60 s"),
    ],
    ids=["sleeps", "ignores-signals", "leaves-a-child", "prints-bytes", "is-killed"],
)
def test_an_interpreter_that_becomes_no_zygote_is_told_and_ended(
    place: Place, tmp_path: Path, text: str, timeout_s: float, says: str
) -> None:
    python = script(tmp_path, text)
    launcher = place.launcher(python, timeout_s)
    with pytest.raises(TargetDown) as caught:
        launcher.warm_up()
    assert str(caught.value).startswith(f"{python} ")
    assert re.search(says, str(caught.value))
    assert f"{python} -c 'import jax'" in str(caught.value)
    assert gone(place.mark, ENDS_S)


def test_a_zygote_that_was_begun_is_the_one_that_is_used(place: Place, tmp_path: Path) -> None:
    began = tmp_path / "began"
    real = provision("current").python
    launcher = place.launcher(script(tmp_path, f'echo >> {began}; exec {real} "$@"'), ENDS_S)
    launcher.begin()
    assert until(began.exists, ENDS_S)
    launcher.begin()
    launcher.warm_up()
    assert began.read_text() == "\n"
    launcher.close()
    assert gone(place.mark, ENDS_S)


def test_the_time_between_its_begin_and_its_use_is_not_the_zygotes(place: Place) -> None:
    within_s = 0.5
    launcher = place.launcher(provision("current").python, within_s)
    launcher.begin()
    assert until(lambda: launcher._place in place.hub._arrived, ENDS_S)
    time.sleep(within_s)
    launcher.warm_up()
    launcher.close()
    assert gone(place.mark, ENDS_S)


def test_a_zygote_that_was_begun_and_never_used_is_ended(place: Place, tmp_path: Path) -> None:
    launcher = place.launcher(script(tmp_path, "sleep 3600"), ENDS_S)
    launcher.begin()
    assert until(lambda: bool(pids(place.mark)), ENDS_S)
    launcher.close()
    assert gone(place.mark, ENDS_S)


@pytest.mark.parametrize(
    ("process", "changes", "verdict", "detail", "stack"),
    [
        (1, {"address": "silent"}, Verdict.HUNG, "never came up", r" in open_to_controller\n"),
        (
            1,
            {"coordinator": "127.0.0.1:9"},
            Verdict.HUNG,
            "never came up",
            r" in wait_for_listener\n",
        ),
        (
            1,
            {"coordinator": "nowhere"},
            Verdict.CRASHED,
            r"raised to the top: ValueError: .+ while the cluster came up",
            "",
        ),
        (
            0,
            {"log": "/dev/null/log"},
            Verdict.CRASHED,
            "exited with status 1 while the cluster came up",
            "",
        ),
    ],
    ids=["no-hello", "no-coordinator", "raises", "exits-before-hello"],
)
def test_a_cluster_that_does_not_come_up_says_which_process_and_why(
    place: Place,
    silent_hub: str,
    process: int,
    changes: dict[str, str],
    verdict: str,
    detail: str,
    stack: str,
) -> None:
    changes = {k: silent_hub if v == "silent" else v for k, v in changes.items()}
    launcher = place.launcher(provision("current").python, deadlines.ZYGOTE_START_S)
    launcher.warm_up()
    before = pids(place.mark)
    patience_s = 3.0 if verdict == Verdict.HUNG else 60.0
    with pytest.raises(ClusterDown) as caught:
        Cluster(
            Settings(launcher, process, changes),
            place.hub,
            Topology(2, 2),
            start_timeout_s=patience_s,
        )
    fault = caught.value.fault
    assert fault.kind == verdict
    assert re.fullmatch(rf"process {process} of 2x2 {detail}", fault.detail)
    assert [state.process for state in fault.processes] == [process, 1 - process]
    if verdict == Verdict.HUNG:
        assert {state.state for state in fault.processes} == {"did not come up"}
    assert re.search(stack, fault.processes[0].stack)
    assert until(lambda: pids(place.mark) == before, ENDS_S)
    assert not list(place.folder.glob("cluster-*")), "its files are left"
    launcher.close()
    assert gone(place.mark, ENDS_S)
