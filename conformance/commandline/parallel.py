"""Compute in several processes, which are killed as soon as the caller ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

R = TypeVar("R")
T = TypeVar("T")


class LostProcessError(RuntimeError):
    """A process ended before it had answered."""


def in_processes(
    function: Callable[[int], R], count: int, processes: int | None = None, *, at_once: int = 1
) -> Iterator[R]:
    """Yield `function(0)` to `function(count - 1)` in order, from forked processes, one per core,
    which share what this one has loaded; only the results are pickled.

    A process is given `at_once` numbers in one message.
    """
    messages = [range(first, count)[:at_once] for first in range(0, count, at_once)]
    processes = min(processes or _cores(), len(messages))
    # JAX has threads once it computes, and a fork could wait for ever for one of their locks.
    if processes < 2 or "jax" in sys.modules:
        yield from map(function, range(count))
        return

    def each(numbers: range) -> list[R]:
        return list(map(function, numbers))

    for some in answers(each, messages, processes, start="fork"):
        yield from some


def _cores() -> int:
    """Return how many cores processes may use; 1 where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def answers(
    function: Callable[[T], R], items: Sequence[T], processes: int, *, start: str | None = None
) -> Iterator[R]:
    """Yield `function(item)` of each item in order, from processes that start by a method of
    `multiprocessing`.

    An error of the function is raised here; LostProcessError if a process was killed.
    """
    found: dict[int, tuple[R | None, Exception | None]] = {}
    busy: dict[Connection, int] = {}
    left = iter(enumerate(items))

    def give(link: Connection) -> None:
        for number, item in left:
            busy[link] = number
            link.send(item)
            return

    try:
        with _started(function, processes, start) as links:
            for link in links:
                give(link)
            for number in range(len(items)):
                while number not in found:
                    ready = wait(list(busy))
                    for link in [one for one in busy if one in ready]:
                        found[busy.pop(link)] = link.recv()
                        give(link)
                result, error = found.pop(number)
                if error is not None:
                    raise error
                yield result  # type: ignore[misc]
    except (EOFError, ConnectionError) as error:
        raise LostProcessError("a process was killed before it had answered") from error


@contextmanager
def _started(
    function: Callable[[Any], Any], count: int, start: str | None
) -> Iterator[list[Connection]]:
    """Start processes that answer the items that they are sent, and kill them in the end.

    An executor waits for the rest of the work when it is terminated, and may wait forever for a
    message of which a killed process had written a part.
    """
    context: Any = multiprocessing.get_context(start)
    started: list[Any] = []
    links: list[Connection] = []
    try:
        for _ in range(count):
            here, there = context.Pipe()
            started.append(context.Process(target=_answer, args=(function, there), daemon=True))
            started[-1].start()
            there.close()  # so that the process's end is the end of the link
            links.append(here)
        yield links
    finally:
        running = [one for one in started if one.pid is not None]
        for one in running:
            one.kill()
        for one in running:
            one.join()


def _answer(function: Callable[[Any], Any], link: Connection) -> None:
    """Answer the items that arrive, until the parent is gone or kills this process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is answered by the parent
    while True:
        try:
            item = link.recv()
            try:
                answer: tuple[Any, Exception | None] = function(item), None
            except Exception as error:  # raised by the parent
                answer = None, error
            link.send(answer)
        except (EOFError, ConnectionError):
            return
