"""Render in several processes: which pages together, and from how many on.

The data to render is large and cannot be sent to another process; a forked one has it already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from conformance.commandline.parallel import in_processes

T = TypeVar("T")

WORTH = 200  # of fewer, starting processes costs more than they save
AT_ONCE = 16  # numbers that a process is given in one message, at least
MESSAGES = 200  # about as many are sent, of however many numbers


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
    if count < worth:
        return map(do, range(count))
    return in_processes(do, count, processes, at_once=max(at_once, count // MESSAGES))
