"""Donated arguments in a scanned program, and what it does with their names after the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning.imports import dotted
from conformance.scanning.names import OF_METADATA
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    PMAP,
    UNKNOWN,
    Argument,
    Array,
    Constant,
    Donated,
    Function,
    Instance,
    Items,
    Mapped,
    Value,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter

# Functions that look at nothing but the shape and dtype of their first argument.
_OF_SHAPES = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "shape", "ndim"})


def used_again(run: Interpreter, scope: Scope, node: cst.BaseExpression, donated: Donated) -> None:
    """Note that a name whose array was donated is used for more than a deleted array supports, or
    asked whether it is deleted although new pmap keeps it.
    """
    detector = "kept donation" if run.metadata else "donated again"
    if run.metadata:
        if run.metadata != "is_deleted" or not donated.unused:
            return
    elif isinstance(donated.value, Array) and donated.value.of == PMAP and not run.passed_to_map:
        return  # each version deletes an output that is donated, and raises the same error
    words = {"detector": frozenset({detector}), "map": frozenset({PMAP})}
    run.note(scope, "detected", node, words, {"value": node})


def donate(run: Interpreter, scope: Scope, mapped: Mapped, arguments: Sequence[Argument]) -> None:
    """Mark the variables whose arrays a call of a mapped function donates."""
    for at in _numbers(mapped.options.get("donate_argnums")):
        if at >= len(arguments) or any(one.star for one in arguments[: at + 1]):
            continue
        one = arguments[at]
        twice = isinstance(one.node, cst.Name) and any(
            isinstance(other.node, cst.Name) and other.node.value == one.node.value
            for place, other in enumerate(arguments)
            if place != at
        )
        donated = Donated(value=one.value, unused=_is_unused(mapped.function, at))
        if twice:
            used_again(run, scope, one.node, donated)
        mark(scope, one.node, donated)


def mark(scope: Scope, node: cst.BaseExpression, donated: Donated) -> None:
    """Mark the variable, attribute or item in which a donated array was."""
    for name, code in scope.aliases.items():  # `old = state` before `state` is donated
        if code == dotted(node) and name in scope.variables:
            scope.variables[name] = donated
    if isinstance(node, cst.Name) and node.value in scope.variables:
        scope.variables[node.value] = donated
    elif isinstance(node, cst.Subscript):  # of `*arguments`
        _mark_item(scope, node, donated)
    elif isinstance(node, cst.Attribute):
        owner = _held_by(scope, node.value)
        if isinstance(owner, Instance):
            owner.attributes[node.attr.value] = donated


def _held_by(scope: Scope, node: cst.BaseExpression) -> Value:
    """Return the value of a name, or of an attribute of the program's own instances."""
    match node:
        case cst.Name(name):
            return scope.value(name)
        case cst.Attribute(value=inner, attr=cst.Name(name)):
            owner = _held_by(scope, inner)
            return owner.attributes.get(name, UNKNOWN) if isinstance(owner, Instance) else UNKNOWN
    return UNKNOWN


def _mark_item(scope: Scope, node: cst.Subscript, donated: Donated) -> None:
    match node:
        case cst.Subscript(
            value=cst.Name(name),
            slice=[cst.SubscriptElement(cst.Index(cst.Integer(number)))],
        ) if isinstance(found := scope.variables.get(name), Items):
            some = list(found.items)
            if int(number) < len(some):
                some[int(number)] = donated
                scope.variables[name] = replace(found, items=tuple(some))


def _numbers(option: Argument | None) -> tuple[int, ...]:
    if option is None:
        return ()
    value = option.value
    some = value.items if isinstance(value, Items) else (value,)
    return tuple(
        one.value
        for one in some
        if isinstance(one, Constant) and type(one.value) is int and one.value >= 0
    )


def _is_unused(function: Value, at: int) -> bool:
    """Return whether a function's body uses no more than the shape and dtype of a parameter."""
    if not isinstance(function, Function):
        return False
    params = function.node.params
    names = [one.name.value for one in (*params.posonly_params, *params.params)]
    at += function.owner is not None
    if at >= len(names):
        return False
    uses = _Uses(names[at])
    function.node.body.visit(uses)
    return not uses.found


class _Uses(cst.CSTVisitor):
    """Looks for uses of a name other than of the shape and dtype of its array."""

    def __init__(self, name: str) -> None:
        self.name, self.found = name, False

    def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
        self.found |= node.value == self.name

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
        if not (self._is_it(node.value) and node.attr.value in OF_METADATA):
            node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:  # noqa: N802
        node.value.visit(self)
        return False

    def visit_Call(self, node: cst.Call) -> bool:  # noqa: N802
        of_shapes = isinstance(node.func, cst.Attribute) and node.func.attr.value in _OF_SHAPES
        return not (of_shapes and len(node.args) == 1 and self._is_it(node.args[0].value))

    def _is_it(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.name
