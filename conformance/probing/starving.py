"""How long processes could have run and were given no core: that is not their time.

Linux counts it for each thread. A process that waits for another, as in a deadlock, does not ask
for a core, so nothing is counted of it: on a loaded machine a hang is found as soon as on an idle
one, and a process that is only slow there is not called one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

Delays = Mapping[str, float]  # of each thread of a process, by its id: seconds without a core

_NS = 1e-9


def delays(pid: int, processes: Path = Path("/proc")) -> dict[str, float]:
    """Of a process since it began; empty where the system does not count, or the process is gone.

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
    """Seconds between two looks at the same processes that are not to be held against them.

    Of a process what its most delayed thread waited; of several their sum, since they wait for
    each other in turn.
    """
    return sum(
        max((now - then.get(thread, 0.0) for thread, now in threads.items()), default=0.0)
        for then, threads in zip(before, after, strict=True)
    )
