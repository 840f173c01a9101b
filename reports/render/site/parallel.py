"""Run a function for many numbers on all cores, in processes forked from this one.

The data to render is large and cannot be sent to another process; a forked one has it already. On
systems without fork everything runs in this process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

WORTH = 200  # of fewer, starting processes costs more than they save
AT_ONCE = 16  # numbers that a process is given in one message, at least
MESSAGES = 200  # about as many are sent, of however many numbers

_here: list[Callable[[int], Any]] = []  # in a forked process alone: what it does


def batches(items: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of things in batches: those of one name together, the others a few at a
    time in their order. Names come first, as the last batch should be a small one.
    """
    named: dict[str, list[int]] = {}
    for number, name in enumerate(items):
        named.setdefault(name, []).append(number)
    others = named.pop("", [])
    few = (others[at : at + AT_ONCE] for at in range(0, len(others), AT_ONCE))
    return tuple(map(tuple, (*named.values(), *few)))


def in_parallel(
    do: Callable[[int], T],
    count: int,
    processes: int | None = None,
    *,
    worth: int = WORTH,
    at_once: int = AT_ONCE,
) -> Iterator[T]:
    """Yield `do` of 0, 1, ..., in that order; of fewer than `worth` in this process."""
    processes = processes or _cores()
    if count < worth or processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(do, range(count))
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, _begin, (do,)) as pool:
        try:
            yield from pool.map(_one, range(count), chunksize=max(at_once, count // MESSAGES))
        except BaseException:  # interrupted, terminated, or nobody wants the rest
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _begin(do: Callable[[int], Any]) -> None:
    """Initialise a forked process, whose end differs from this one's."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _here.append(do)


def _one(number: int) -> Any:
    return _here[0](number)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
