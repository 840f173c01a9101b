"""Find the programs that JAX compiled during a call, eager operations included. Runs in the worker.

The runtime lists its live executables; those that were not there before belong to the call. So an
`x[0]` outside any `jit` of the user's is observed too. A program whose function has been freed is
no longer live: that is an error, never an empty answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from conformance.spec import hlo
from conformance.worker.calls import Calls, calls_of
from conformance.worker.compiling import compiled_as_by_default

COMPILES = "compiler.py:compile_or_get_cached"  # runs once for each program

# What is asked for programs in place of the runtime, the last one: a worker's that compiles for
# devices which are not here.
instead: list[Callable[[], list[Any]]] = []

_MEMORY = ("argument", "output", "alias", "temp")


class LostProgramError(RuntimeError):
    """A program was compiled whose function did not outlive the call."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A call's result, one record per program that it compiled, and the functions that ran."""

    result: Any
    programs: list[dict[str, Any]]
    calls: Calls


def compiled_by(function: Callable[[], Any], *, watched: str | None = None) -> Compiled:
    """Call `function` with empty caches and return what JAX compiled for it.

    A record has the program's `name`, its `collectives` (operation, shape, bytes on one device) and
    `memory`: the bytes of arguments, outputs, outputs aliased to arguments, and temporaries on one
    device. `watched` as for `calls_of`. Exceptions of `function` are passed on; LostProgramError if
    a program can no longer be found.
    """
    jax.clear_caches()
    before = executables()  # kept, so that no identity is given to another object
    known = {id(one) for one in before}
    with compiled_as_by_default():
        result, calls = calls_of(function, watched=watched)
    fresh = [one for one in executables() if id(one) not in known]
    if fresh and not calls.counts[COMPILES]:
        raise LostProgramError(
            f"{len(fresh)} programs were compiled, and {COMPILES} was not called: this JAX "
            "compiles elsewhere, so that none would be missed: name the function that it calls"
        )
    if calls.counts[COMPILES] > len(fresh):
        raise LostProgramError(
            f"{calls.counts[COMPILES]} programs were compiled, {len(fresh)} of them can still be "
            "seen: make every jitted function before the call and keep it until afterwards"
        )
    return Compiled(result, [_record(one) for one in reversed(fresh)], calls)


def executables() -> list[Any]:
    """Return the programs of this process, newest first."""
    if instead:
        return instead[-1]()
    return list(jax.local_devices()[0].client.live_executables())


def program_record(executable: Any) -> dict[str, Any]:
    """Return name, collectives and memory of a compiled program, as `compiled_by` describes."""
    return _record(executable)


def _record(executable: Any) -> dict[str, Any]:
    modules = executable.hlo_modules()
    stats = executable.get_compiled_memory_stats()
    memory = {kind: int(getattr(stats, f"{kind}_size_in_bytes")) for kind in _MEMORY}
    return {
        "name": modules[0].name if modules else "",
        "collectives": [
            dataclasses.asdict(one)
            for module in modules
            for one in hlo.collectives(module.to_string())
        ],
        "memory": memory,
    }
