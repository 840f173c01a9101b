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
        *("sum", "max", "min", "any", "all", "staticmethod", "super", "map", "filter"),
        *("setattr",),
    }
)


@dataclass(slots=True, eq=False)
class Scope:
    """The variables of a module, class or function; `parent` is the scope around it."""

    source: Source
    parent: Scope | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    of_class: bool = False
    elsewhere: dict[str, Scope] = field(default_factory=dict)  # by name: global or nonlocal
    aliases: dict[str, str] = field(default_factory=dict)  # names, and the code of the same object

    def bind(self, name: str, value: Value) -> None:
        """Set a variable, in the scope that holds it."""
        self.elsewhere.get(name, self).variables[name] = value
        self.forget(name)

    def declare(self, name: str, *, of_module: bool) -> None:
        """Note a `global` or `nonlocal` statement."""
        scope = self.parent
        while scope is not None and scope.parent is not None:
            if not of_module and name in scope.variables and not scope.of_class:
                break
            scope = scope.parent
        if scope is not None:
            self.elsewhere[name] = scope

    def alias(self, name: str, code: str) -> None:
        """Note that a name is bound to what a name or attribute refers to."""
        if code and code != name:
            self.aliases[name] = code

    def forget(self, code: str) -> None:
        """Drop what is known of a name or attribute that is bound anew."""
        self.aliases = {k: v for k, v in self.aliases.items() if code not in (k, v)}

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
