"""Which tests look at what the compiler made: its programs, their memory, or their time.

Workers compile all other programs with less work (`conformance/worker/compiling.py`). What a
test's program calls is followed by name, from its probe and its rows on, without importing JAX.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType
from typing import Any

from conformance.spec.clause import Clause

# The context in which a worker compiles as a user's process does, and the method that enters it.
CONTEXT = "conformance.worker.compiling", "compiled_as_by_default"
METHOD = "compiled"

_OURS = ("conformance.", "harness.")


def looks_at_compiled(clause: Clause) -> bool:
    """Return whether a clause's program looks at compiled programs, memory or time."""
    todo = [inspect.unwrap(clause.probe)]
    for row in clause.rows.values():
        values = (getattr(row, one.name) for one in fields(row)) if is_dataclass(row) else ()
        todo += _functions((row, *values))
    seen = set[Any]()
    while todo:
        function = todo.pop()
        if function in seen:
            continue
        seen.add(function)
        looks, called = _called(function)
        if looks:
            return True
        todo += called
    return False


@functools.cache
def _called(function: Any) -> tuple[bool, tuple[Any, ...]]:
    """Return whether a function itself looks at what is compiled, and what of ours it uses."""
    if isinstance(function, type):
        return False, tuple(_functions(vars(function).values()))
    if (function.__module__, function.__name__) == CONTEXT:
        return True, ()
    names = frozenset(_names(function.__code__))
    global_values = (function.__globals__.get(name) for name in names)
    closed_over = (cell.cell_contents for cell in function.__closure__ or ())
    return METHOD in names, tuple(_functions((*global_values, *closed_over)))


def _functions(values: Iterable[Any]) -> Iterator[Any]:
    """Yield those values that are functions or classes of ours, without what wraps them."""
    for value in values:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        # Nothing more is asked of a module: one that stands in for JAX's would import it.
        if callable(value) and (getattr(value, "__module__", None) or "").startswith(_OURS):
            function = inspect.unwrap(value)
            if isinstance(function, FunctionType | type):
                yield function


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions written in it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
