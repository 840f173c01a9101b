"""What a worker started, and what those started: found, so that it ends with the worker.

A job that a probe starts leads sessions of its own, out of reach of the worker's process group, and
a process of it that is stopped would outlive everything.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

PROCESSES = Path("/proc")  # Linux alone; elsewhere the worker's own group is all that ends


def kill_with_descendants(pid: int) -> None:
    """SIGKILL to this child's group, and to all that descends from it, in whatever session."""
    _signal_group(pid, signal.SIGSTOP)  # what is stopped starts nothing more
    found: list[int] = []
    while more := [one for one in descendants(pid) if one not in found]:
        for one in more:
            _signal(one, signal.SIGSTOP)
        found += more
    for one in found:
        _signal(one, signal.SIGKILL)
    _signal_group(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on; exact of processes that are stopped."""
    found = [pid]
    for one in found:
        found += _children(one)
    return found[1:]


def _children(pid: int) -> list[int]:
    """Those of each of its threads, as the kernel lists them."""
    found: list[int] = []
    for listed in (PROCESSES / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has just ended
            found += map(int, listed.read_text().split())
    return found


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # it had no time to lead a group of its own
        _signal(pid, number)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
