"""How much work a worker's compiler does: little, except where what it makes is itself looked at.

Three quarters of a probe's time goes into machine code for programs of a few elements, which run
once or twice. JAX's own setting leaves LLVM's part out; what XLA does with a program, its
collectives and buffers among it, stays as it is.
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
    """From now on; what the facts say of it, empty where this JAX has no such setting."""
    if SETTING not in jax.config.values:
        return ""
    jax.config.update(SETTING, True)
    return f"{SETTING}, but not where compiled programs, memory or time are looked at"


@contextmanager
def compiled_as_by_default() -> Iterator[None]:
    """Within, programs are compiled as a user's are."""
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
    """An entry for each program that this process compiles, from the first call of this on."""
    seen: list[str] = []

    def heard(event: str, duration: float, **_: Any) -> None:
        if event.endswith(_COMPILED):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    return seen
