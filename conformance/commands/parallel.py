"""Compute in forked processes, one per core, which share what the parent has loaded."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")

_FUNCTIONS: list[Callable[[int], Any]] = []  # of the pools of this process; a fork finds them here


def in_processes(function: Callable[[int], R], count: int) -> Iterator[R]:
    """Yield `function(0)` to `function(count - 1)` in order; only the results are pickled."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # JAX has threads once it computes, and a fork could wait for ever for one of their locks.
    if cores < 2 or count < 2 or "jax" in sys.modules:
        yield from map(function, range(count))
        return
    _FUNCTIONS.append(function)
    pool = ProcessPoolExecutor(
        min(cores, count), multiprocessing.get_context("fork"), initializer=_ignore_interrupt
    )
    try:
        yield from pool.map(_call, range(count))
    finally:
        pool.shutdown(cancel_futures=True)
        _FUNCTIONS.pop()


def _call(number: int) -> Any:
    return _FUNCTIONS[-1](number)


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
