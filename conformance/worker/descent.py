"""Processes that end together: a worker with all of its descendants, a child with its parent.

A job that a probe starts leads sessions of its own, outside the worker's process group, and a
stopped process of it would outlive everything.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

PROCESSES = Path("/proc")  # Linux alone; elsewhere the worker's own group is all that ends
_PR_SET_PDEATHSIG = 1


def kill_with_descendants(pid: int) -> None:
    """Send SIGKILL to this child's process group and to all of its descendants, in any session."""
    _signal_group(pid, signal.SIGSTOP)  # what is stopped starts nothing more
    found: list[int] = []
    while more := [one for one in descendants(pid) if one not in found]:
        for one in more:
            _signal(one, signal.SIGSTOP)
        found += more
    for one in found:
        _signal(one, signal.SIGKILL)
    _signal_group(pid, signal.SIGKILL)


def end_with_parent(end: Callable[[], None]) -> None:
    """Call `end` when this process's parent has ended, even if this process is stopped then.

    The kernel sends SIGCONT for it, the only signal that a stopped process can handle. SIGCONT also
    comes when a thread of the parent ends or a user continues the process; the parent is unchanged
    then. A process forked from this one, which has another parent, is not ended.
    """
    own, parent = os.getpid(), os.getppid()

    def look(*_: object) -> None:
        if os.getpid() == own and os.getppid() != parent:
            end()

    signal.signal(signal.SIGCONT, look)
    die_with_parent(signal.SIGCONT)


def die_with_parent(number: int) -> None:
    """Have the kernel send `number` to this process when its parent ends."""
    # Linux alone has this; elsewhere the connection's end does the same, a little later.
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process; exact if those processes are stopped."""
    found = [pid]
    for one in found:
        found += _children(one)
    return found[1:]


def _children(pid: int) -> list[int]:
    """Return the ids of a process's children, over all of its threads, as the kernel lists them."""
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
