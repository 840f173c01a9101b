"""Which tests look at what the compiler made: its programs, their memory, or their time.

Workers compile all other programs with less work (`conformance/worker/compiling.py`). What a
test's program calls is followed by name, from its probe and its rows on, without importing JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
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
    todo = [clause.probe, *(one for row in clause.rows.values() for one in _functions(row))]
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
    place = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    if place == CONTEXT:
        return True, ()
    if isinstance(function, type):
        return False, tuple(_functions_of(vars(function).values()))
    while (wrapped := getattr(function, "__wrapped__", None)) is not None:
        function = wrapped
    if not isinstance(function, FunctionType):
        return False, ()
    names = frozenset(_names(function.__code__))
    global_values = (function.__globals__.get(name) for name in names)
    closed_over = (cell.cell_contents for cell in function.__closure__ or ())
    return METHOD in names, tuple(_functions_of((*global_values, *closed_over)))


def _functions(row: Any) -> Iterator[Any]:
    """Yield the functions of a row: itself, or the values of its fields."""
    values = [row]
    if is_dataclass(row):
        values += [getattr(row, one.name) for one in fields(row)]
    yield from _functions_of(values)


def _functions_of(values: Any) -> Iterator[Any]:
    """Yield those values that are functions or classes of ours."""
    for value in values:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if (getattr(value, "__module__", None) or "").startswith(_OURS) and callable(value):
            yield value


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions written in it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
