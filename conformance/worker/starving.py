"""Measure how long processes were runnable without a core, which must not count as their time.

Linux counts it for each thread. A process that waits for another, as in a deadlock, does not want a
core, so nothing is counted: on a loaded machine a hang is found as soon as on an idle one, and a
slow process is not taken for a hanging one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

Delays = Mapping[str, float]  # of each thread of a process, by its id: seconds without a core

_NS = 1e-9


def delays(pid: int, processes: Path = Path("/proc")) -> dict[str, float]:
    """Return a process's delays since it began; empty if the system has no count, or the process
    ended.

    The second number of `schedstat` is the time in the run queue, in nanoseconds.
    """
    found: dict[str, float] = {}
    with contextlib.suppress(OSError):
        for thread in (processes / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                counted = (thread / "schedstat").read_text(encoding="ascii").split()
                found[thread.name] = int(counted[1]) * _NS
    return found


def starved(before: Sequence[Delays], after: Sequence[Delays]) -> float:
    """Return the seconds between two samples that must not count against the processes.

    For one process it is the wait of its most delayed thread; for several the sum, because they
    wait for each other in turn.
    """
    return sum(
        max((now - then.get(thread, 0.0) for thread, now in threads.items()), default=0.0)
        for then, threads in zip(before, after, strict=True)
    )
