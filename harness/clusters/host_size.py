"""How large the machine is that a worker runs on: what durations and memory are read against."""

from __future__ import annotations

import os


def size() -> dict[str, int | None]:
    """The cores that this process may use and the memory in bytes; None where that is unknown."""
    return {"cores": cores(), "memory": _memory()}


def cores() -> int | None:
    """The cores that this process may use; None where that is unknown."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
