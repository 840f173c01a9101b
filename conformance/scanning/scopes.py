"""Scopes of a scanned program: the values of variables, and where a function runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.scanning.values import UNKNOWN, Reference, Value, merged

if TYPE_CHECKING:
    from conformance.scanning.sources import Source

BUILTINS = frozenset(
    {
        *("print", "float", "int", "str", "repr", "list", "tuple", "enumerate", "zip", "iter"),
        *("reversed", "sorted", "len", "format", "range", "getattr", "isinstance", "dict", "next"),
        *("sum", "max", "min", "any", "all", "staticmethod"),
    }
)


@dataclass(slots=True, eq=False)
class Scope:
    """The variables of a module, class or function; `parent` is the scope around it."""

    source: Source
    parent: Scope | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    of_class: bool = False

    def value(self, name: str) -> Value:
        """Return the value of a name, looked up as Python does."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables and (scope is self or not scope.of_class):
                return scope.variables[name]
            scope = scope.parent
        return Reference(name=name) if name in BUILTINS else UNKNOWN

    def holder(self, name: str) -> Scope:
        """Return the scope that binds a name; this one if none does."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope
            scope = scope.parent
        return self

    def taken_over(self, *states: Mapping[str, Value]) -> None:
        """Set the variables to what they may be after any of several branches."""
        if not states:
            return
        names = dict.fromkeys(name for state in states for name in state)
        found: dict[str, Value] = {}
        for name in names:
            values = [state[name] for state in states if name in state]
            value: Value = values[0]
            for other in values[1:]:
                value = merged(value, other)
            found[name] = value
        self.variables = found
