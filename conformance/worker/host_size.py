"""Cores and memory of a worker's machine, for reading its durations and memory figures."""

from __future__ import annotations

import os


def size() -> dict[str, int | None]:
    """Return the usable cores and the memory in bytes; None for what is unknown."""
    return {"cores": cores(), "memory": _memory()}


def cores() -> int | None:
    """Return how many cores this process may use; None if unknown."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
