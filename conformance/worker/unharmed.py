"""Decide whether a process may run another case after one in which a step raised.

An error of Python code that is raised before the runtime gets anything leaves nothing behind, if
JAX's settings and the state of its tracing are what they were before the case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax

from conformance.spec.observation import OUTSIDE, RAISED
from conformance.worker.phases import HAND_OVER
from conformance.worker.plain import FLAG

# Where the phase is unknown the runtime may have refused a launch: after that the process hangs.
_EARLY = frozenset(("construct", "arguments", "trace", "lower"))
# How messages of the runtime begin, some of which arrive as a ValueError.
_STATUS = re.compile(r"[A-Z_]+: ")
# Python's own kinds of errors; the runtime's, and those of the probes' tools, are RuntimeErrors.
_OF_PYTHON = frozenset(
    (
        "AssertionError",
        "AttributeError",
        "LookupError",
        "NameError",
        "NotImplementedError",
        "TypeError",
        "ValueError",
    )
)


def settings() -> tuple[Any, ...]:
    """Return JAX's settings and this thread's tracing state, to be compared after a case.

    They are empty, and equal to nothing, where this JAX does not show them.
    """
    try:
        from jax._src import config, core

        # Each case sets the flag before it maps.
        values = {name: value for name, value in jax.config.values.items() if name != FLAG}
        return values, config.trace_context(), core.trace_state_clean()
    except (ImportError, AttributeError):
        return ()


def unharmed(
    steps: Iterable[Mapping[str, Any]], before: tuple[Any, ...], after: tuple[Any, ...]
) -> bool:
    """Return whether a process is as it was before these steps.

    `before` and `after` are `settings()` before and after them.
    """
    raised = [step for step in steps if step["outcome"] == RAISED]
    return not raised or (bool(before) and before == after and all(map(_is_early, raised)))


def _is_early(step: Mapping[str, Any]) -> bool:
    error = step["exception"]
    functions = {frame.rsplit(":", 1)[-1] for frame in error["frames"]}
    return (
        step["name"] != OUTSIDE
        and error["phase"] in _EARLY
        and not _STATUS.match(error["message"])
        and not _OF_PYTHON.isdisjoint((error["type"], *error["bases"]))
        and functions.isdisjoint(HAND_OVER)
    )
