"""Count the Python functions that a call runs, and record their stack. Runs in the worker.

A call that JAX dispatches in C++ runs none, so their number measures a dispatch without noise;
their names show whether an array passed through the host or was gathered.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import jax

THROUGH_THE_HOST = "array.py:_value"  # the property that fetches a whole array as NumPy


@dataclass
class Calls:
    """`counts` of each `file.py:function` that ran; `stack` at the first run of the watched one.

    The stack is outermost first and begins below the function that was called.
    """

    counts: Counter[str] = field(default_factory=Counter)
    stack: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return how many Python functions ran, without the called one."""
        return sum(self.counts.values())


def calls_of(function: Callable[[], Any], *, watched: str | None = None) -> tuple[Any, Calls]:
    """Call `function`, wait for its result, and return it with the functions that ran.

    `watched` is the `file.py:function` whose stack is recorded. Only this thread is observed.
    Exceptions of `function` are passed on.
    """
    calls = Calls()
    outermost = sys._getframe()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = _name(frame)
        calls.counts[name] += 1
        if name == watched and not calls.stack:
            calls.stack = _stack(frame, outermost)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = function()
    finally:
        sys.setprofile(before)
    calls.counts[_name_of(function)] -= 1
    calls.counts += Counter()  # drops what is not positive
    return jax.block_until_ready(result), calls


def _stack(frame: FrameType, outermost: FrameType) -> list[str]:
    names: list[str] = []
    here: FrameType | None = frame
    while here is not None and here is not outermost:
        names.append(_name(here))
        here = here.f_back
    return names[-2::-1]  # without the function that was called


def _name(frame: FrameType) -> str:
    return _called_from(frame.f_code.co_filename, frame.f_code.co_name)


def _name_of(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else _called_from(code.co_filename, code.co_name)


def _called_from(file: str, function: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1] + ":" + function
