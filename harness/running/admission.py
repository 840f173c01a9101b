"""Limit how many clusters run at once over all test processes of this machine.

Permits are lock files, so a killed process releases its own at once and nothing needs cleaning. A
running cluster holds one permit per process; while it starts it also holds the right to start,
because many clusters that start at once take minutes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from conformance.worker import host_size
from conformance.worker.deadlines import ADMISSION_S

PROCESSES_PER_CORE = 8  # idle workers cost no core; running ones share them
MEMORY_PER_PROCESS_BYTES = 400 * 1024 * 1024
WAITING_CASES_PER_CORE = 4
MEMORY_PER_WAITING_CASE_BYTES = 5 * MEMORY_PER_PROCESS_BYTES  # a worker, and a job of four
STARTS_PER_CORE = 1  # of workers that are forked; an import of JAX asks for no permit
POLL_S = 0.05
PATIENCE_S = 5.0  # before a wait is told to the user


class NoRoom(Exception):
    """The permits were not released in time, or the machine can never have as many."""


class Permits:
    """Held permits, until `release`; also a context manager. `numbers` are their numbers within the
    kind.
    """

    def __init__(self, locks: dict[int, FileLock]) -> None:
        self._locks = list(locks.values())
        self.numbers = tuple(locks)

    def release(self) -> None:
        """Give the permits back; a second call has no effect."""
        for lock in self._locks:
            lock.release()
        self._locks = []

    def __enter__(self) -> Permits:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Admission:
    """The permits of one kind, `capacity` of them, as files `kind-0`, `kind-1`, ... of `folder`."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        capacity: int,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._kind = kind
        self._capacity = capacity
        self._progress = progress
        folder.mkdir(parents=True, exist_ok=True)

    def acquire(
        self,
        count: int,
        timeout_s: float = ADMISSION_S,
        *,
        ending: Callable[[], bool] = lambda: False,
    ) -> Permits:
        """Acquire `count` permits at once, or raise NoRoom; nothing is held while waiting.

        Waiting ends early once `ending` returns true: the run is ending.
        """
        if count > self._capacity:
            raise NoRoom(refusal(count, self._capacity))
        deadline = time.monotonic() + timeout_s
        report_at = time.monotonic() + PATIENCE_S
        while True:
            # One taker at a time, or two that each want several would starve each other.
            locks = None
            with (
                contextlib.suppress(Timeout),
                FileLock(self._folder / f"{self._kind}.taking", timeout=POLL_S),
            ):
                locks = self._take(count)
            if locks is not None:
                return Permits(locks)
            if ending():
                raise NoRoom("the run ends")
            now = time.monotonic()
            if now > deadline:
                raise NoRoom(
                    f"other test processes of this machine held the {self._kind} permits for "
                    f"{timeout_s:g} s: end them, or run fewer with -n"
                )
            if now > report_at:
                self._progress(f"waiting for other clusters on this machine ({self._kind})")
                report_at = deadline
            time.sleep(POLL_S)

    def _take(self, count: int) -> dict[int, FileLock] | None:
        locks: dict[int, FileLock] = {}
        for number in range(self._capacity):
            # Whoever closes the pool, in whichever thread, gives the permits back.
            lock = FileLock(self._folder / f"{self._kind}-{number}", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            locks[number] = lock
            if len(locks) == count:
                return locks
        for lock in locks.values():
            lock.release()
        return None


def fits(processes: Iterable[int]) -> None:
    """Raise ValueError if a cluster of so many processes exceeds what this machine can ever run."""
    most, capacity = max(processes, default=0), process_capacity()
    if most > capacity:
        raise ValueError(refusal(most, capacity))


def refusal(count: int, capacity: int) -> str:
    """Return the message for more processes at once than the capacity."""
    return (
        f"{count} processes at once are more than this machine takes ({capacity}, by its cores and "
        "memory): choose a smaller --topology"
    )


def process_capacity() -> int:
    """Return how many worker processes this machine runs at once, by its cores and memory."""
    by_memory = psutil.virtual_memory().total // 2 // MEMORY_PER_PROCESS_BYTES
    return max(1, min(cores() * PROCESSES_PER_CORE, int(by_memory)))


def waiting_capacity() -> int:
    """Return how many processes of clusters that mostly wait may run at once: they use
    little CPU.
    """
    return max(1, int(psutil.virtual_memory().total // 2 // MEMORY_PER_PROCESS_BYTES))


def waiting_threads() -> int:
    """Return how many cases that mostly wait may run at once; each may start several processes."""
    by_memory = psutil.virtual_memory().total // 2 // MEMORY_PER_WAITING_CASE_BYTES
    return max(1, min(cores() * WAITING_CASES_PER_CORE, int(by_memory)))


def start_capacity() -> int:
    """Return how many clusters may start at once."""
    return max(1, int(cores() * STARTS_PER_CORE))


def cores() -> int:
    """Return how many cores this process may use."""
    return host_size.cores() or 1
