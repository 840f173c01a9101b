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

MARK = "CONFORMANCE_SELFTEST"
POLL_S = 0.05


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
    """Whether `true` came true within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def gone(mark: str, timeout_s: float) -> bool:
    """Whether every marked process is gone within `timeout_s`; prints those that are not."""
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
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    with (folder / "pytest.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**kept, **(environment or {}), MARK: mark},
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
