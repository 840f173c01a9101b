"""Finds the processes that a self-test caused, wherever they ended up in the process tree.

A child whose parent died belongs to nobody's tree any more, so processes are known by a variable
that they inherit. Only those are ever signalled.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from conformance.worker.deadlines import HEARTBEAT_S

MARK = "CONFORMANCE_SELFTEST"
POLL_S = 0.05
# No program that a self-test starts runs as long, on however busy a machine: it hangs.
HANGS_S = 600.0
# What ends, ends within this on a busy machine, and before JAX ends what has lost its peers.
ENDS_S = 60.0
assert ENDS_S < HEARTBEAT_S

FAULTS = "faulty.faults"
# A conftest.py with the fault clauses in place of the catalogue, in the controller and in its xdist
# workers: a run that is about no clause of the catalogue starts in half the time.
FAULTS_ALONE = f"""
import functools, sys
sys.path.append({str(Path(__file__).parent)!r})
from conformance.catalogue import causes, loading
from conformance.judging import deviations

deviations.load_all = lambda: ()  # they are about the catalogue's clauses
causes.load_causes = lambda: {{}}
loading.load = functools.partial(loading.load, ["{FAULTS}"])
loading.PACKAGE = "{FAULTS}"
"""


def outside_pytest() -> dict[str, str]:
    """This process's environment without the variables of the pytest, or its worker, that it is."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}


def new_mark() -> str:
    """A value of MARK that no other process has."""
    return secrets.token_hex(8)


def marked(mark: str) -> list[psutil.Process]:
    """The living processes, this one aside, that were started with this mark."""
    return [p for p in psutil.process_iter() if p.pid != os.getpid() and _has(p, mark)]


def pids(mark: str) -> set[int]:
    """Their ids."""
    return {p.pid for p in marked(mark)}


def until(true: Callable[[], bool], timeout_s: float) -> bool:
    """Return whether `true` became true within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def before_its_end(process: subprocess.Popen[str], true: Callable[[], bool]) -> bool:
    """Return whether `true` became true while the process ran."""
    until(lambda: true() or process.poll() is not None, HANGS_S)
    return true()


def gone(mark: str, timeout_s: float) -> bool:
    """Return whether every marked process ended within `timeout_s`; print those that did not."""
    if until(lambda: not marked(mark), timeout_s):
        return True
    for process in marked(mark):
        with suppress(psutil.Error):
            print("left:", process.pid, process.ppid(), process.status(), process.cmdline())
    return False


def end(mark: str) -> None:
    """SIGKILL whatever is left, so that a failing test leaves nothing either."""
    for process in marked(mark):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def kill_at_once(mark: str) -> None:
    """SIGKILL all of them so that none can clean up after another, as the end of a machine does."""
    some = sorted(marked(mark), key=lambda one: one.create_time(), reverse=True)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in some:  # children first: a parent's end would continue a stopped child
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@contextmanager
def running_pytest(
    arguments: Sequence[str],
    folder: Path,
    mark: str,
    environment: Mapping[str, str] | None = None,
    front: Sequence[str] = (),
) -> Iterator[subprocess.Popen[str]]:
    """A pytest of its own process group in `folder`; its output goes to `pytest.log` there.

    `front` is a command that runs it.
    """
    command = [*front, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    with (folder / "pytest.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**outside_pytest(), **(environment or {}), MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
            preexec_fn=_interruptible,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        end(mark)


def _interruptible() -> None:
    """A job in the background is started with SIGINT ignored, and so would its children be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


SUITE = """
import pytest

@pytest.mark.section("faults")
def test_faults(cell):
    cell.check()
"""
