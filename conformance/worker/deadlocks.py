"""Detect threads that are deadlocked, as opposed to slow. Runs in the worker.

A deadline cannot tell the two apart on a loaded machine. Deadlocked threads sleep: in every sample
all other threads of the process are asleep and use no CPU time, while the watching thread completes
its control work. A thread that waits for a core is runnable, and never counts as asleep.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

SAMPLES = 40  # in a row that must show the same, with control work between each two
PAUSE_S = 0.02  # between two samples
TICKS = 1  # of CPU time that all sleeping threads together may use meanwhile, each of 10 ms

_TASKS = Path("/proc/self/task")
_SLEEPING = "S"


class Deadlock(RuntimeError):
    """All threads sleep and none continues; the text says how many finished."""


def run_all(functions: Sequence[Callable[[], None]], control: Callable[[], object]) -> None:
    """Run each function in its own thread and wait; Deadlock if they are stuck.

    `control` is work of the watching thread between two samples: its completion proves that this
    process gets a core. Stuck threads are left behind as daemons.
    """
    threads = [threading.Thread(target=one, daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    samples: list[tuple[int, int]] = []
    while any(thread.is_alive() for thread in threads):
        control()
        time.sleep(PAUSE_S)
        left = sum(thread.is_alive() for thread in threads)
        ticks = sleeping_ticks()
        if ticks is None or (samples and left != samples[0][0]):
            samples = []
        if ticks is not None:
            samples.append((left, ticks))
        if samples and samples[-1][1] - samples[0][1] > TICKS:
            samples = samples[-1:]
        if left and len(samples) > SAMPLES:
            raise Deadlock(f"{left} of {len(threads)} threads sleep and use no CPU time")


def wait_until_blocked(
    thread: int, ended: Callable[[], bool], control: Callable[[], object]
) -> None:
    """Return when `ended()`, or when that thread sleeps and uses no CPU time in many samples.

    `thread` is its `threading.get_native_id()`; `control` is what it is for `run_all`. Call this in
    another thread, which releases the GIL between two samples.
    """
    samples: list[int] = []
    while not ended() and len(samples) <= SAMPLES:
        control()
        time.sleep(PAUSE_S)
        ticks = _ticks(str(thread))
        samples = [*samples, ticks] if ticks is not None else []
        if samples and samples[-1] - samples[0] > TICKS:
            samples = samples[-1:]


def sleeping_ticks() -> int | None:
    """Return the CPU time of all other threads, in ticks; None if one of them is awake."""
    total = 0
    for task in os.listdir(_TASKS):
        if int(task) == threading.get_native_id():
            continue
        ticks = _ticks(task)
        if ticks is None:
            return None
        total += ticks
    return total


def _ticks(task: str) -> int | None:
    """Return the CPU time of a sleeping thread, in ticks; None if it is awake or has ended."""
    try:
        fields = (_TASKS / task / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:  # it has just ended
        return None
    if fields[0] != _SLEEPING:
        return None
    return int(fields[11]) + int(fields[12])
