"""Reduce compilation time in workers, except where compiled programs are examined.

Most of a probe's time goes into machine code for small programs that run once or twice. A setting
of JAX's skips LLVM's optimisations, and a flag of XLA's leaves out a slow generator of code for
fused operations; what XLA does with a program, its collectives and buffers included, is unchanged,
but for the last bit of some values. The setting can be taken back for a while; the flag holds for
a process's life.
"""

from __future__ import annotations

import functools
import os
import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.monitoring

_COMPILED = "backend_compile_duration"  # the event that JAX records of each program

SETTING = "jax_disable_most_optimizations"
FLAG = "--xla_cpu_use_fusion_emitters=false"
VARIABLE = "XLA_FLAGS"  # XLA reads it once, when it first needs options


def compile_quickly(*, always: bool = False) -> str:
    """Reduce compilation work from now on; return a description of what workers leave out, empty
    if this JAX lacks the setting.

    `always`: nobody looks at what this process compiles, so that the flag may be used as well. No
    backend may have been initialised.
    """
    if SETTING not in jax.config.values:
        return ""
    jax.config.update(SETTING, True)
    left_out = SETTING
    if takes_flag():
        left_out += f", {VARIABLE}={FLAG}"
        if always:
            _read_flags()
    return f"{left_out}; but not where compiled programs, memory or time are looked at"


@functools.cache
def takes_flag() -> bool:
    """Return whether this XLA knows the flag; a process forked for it is killed by one that does
    not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of forking; it has no threads yet
        pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # XLA says there what it does not know
            _read_flags()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return status == 0


def _read_flags() -> None:
    """Have XLA read its flags, with ours; programs see the environment without it."""
    from jax._src.lib import xla_client

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = f"{before or ''} {FLAG}".strip()
    try:
        xla_client.CompileOptions()
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


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
