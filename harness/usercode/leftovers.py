"""Find processes that a script started and left, by a variable that they inherit.

A daemon leads its own session and has no parent any more, so that neither a process group nor a
process tree contains it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "PMAP_CONFORMANCE_JOB"
PROCESSES = Path("/proc")  # Linux alone; elsewhere nothing is found
MOST_ROUNDS = 10  # what is found may have started more meanwhile


def end_leftovers(mark: str) -> int:
    """Kill every process with `mark` in its variable; return how many there were."""
    ended = 0
    for _ in range(MOST_ROUNDS):
        found = list(_marked(mark))
        if not found:
            break
        for pid in found:
            ended += _kill(pid, mark)
    return ended


def _marked(mark: str) -> Iterator[int]:
    for folder in PROCESSES.glob("[0-9]*"):
        pid = int(folder.name)
        if pid != os.getpid() and _has(pid, mark):
            yield pid


def _has(pid: int, mark: str) -> bool:
    wanted = f"{VARIABLE}={mark}".encode()
    try:  # that of a process which has ended is empty
        return wanted in (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(pid: int, mark: str) -> bool:
    """Kill a process if it still has the mark: its id may belong to another one by now."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if _has(pid, mark):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False
