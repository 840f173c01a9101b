"""Reduce compilation time in workers, except where compiled programs are examined.

Most of a probe's time goes into machine code for small programs that run once or twice. A setting
of JAX's skips LLVM's optimisations; what XLA does with a program, its collectives and buffers
included, is unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.monitoring

_COMPILED = "backend_compile_duration"  # the event that JAX records of each program

SETTING = "jax_disable_most_optimizations"


def compile_quickly() -> str:
    """Reduce compilation work from now on; return its description, empty if this JAX lacks the
    setting.
    """
    if SETTING not in jax.config.values:
        return ""
    jax.config.update(SETTING, True)
    return f"{SETTING}, but not where compiled programs, memory or time are looked at"


@contextmanager
def compiled_as_by_default() -> Iterator[None]:
    """Compile programs as a user's are, within this context."""
    if SETTING not in jax.config.values:
        yield
        return
    before = jax.config.values[SETTING]
    jax.config.update(SETTING, False)
    try:
        yield
    finally:
        jax.config.update(SETTING, before)


@functools.cache
def compilations() -> list[str]:
    """Return a list that grows by an entry for each program that this process compiles from
    now on.
    """
    seen: list[str] = []

    def heard(event: str, duration: float, **_: Any) -> None:
        if event.endswith(_COMPILED):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    return seen
