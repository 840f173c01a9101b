"""Lists and dictionaries of a scanned program: how they are made, how they grow, what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import items
from conformance.scanning.names import ADDS, TAKES
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    UNKNOWN,
    Argument,
    Array,
    Constant,
    Items,
    Method,
    Value,
    merged_all,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


RECORD = "a named tuple"  # of the arguments that its maker and it are given


def dictionary(arguments: Sequence[Argument]) -> Value:
    """Return the value of `dict(other, key=value)`; UNKNOWN if nothing is known of its keys."""
    pairs: dict[Any, Value] = {}
    for one in arguments:
        if one.keyword:
            pairs[one.keyword] = one.value
        elif not add_all(pairs, one.value):
            return UNKNOWN
    return Items(items=tuple(pairs.values()), kind="dict", keys=tuple(pairs))


def record(arguments: Sequence[Argument]) -> Value:
    """Return the value of a call of what `namedtuple(name, fields)` returns."""
    named, *rest = arguments[1:]
    fields = named.value
    words: Any = fields.value if isinstance(fields, Constant) else ()
    if isinstance(words, str):
        names = words.replace(",", " ").split()
    else:
        some = fields.items if isinstance(fields, Items) else ()
        names = [str(one.value) for one in some if isinstance(one, Constant)]
    values = dict.fromkeys(names, UNKNOWN)
    values |= dict(zip(names, (one.value for one in rest if not one.keyword), strict=False))
    values |= {one.keyword: one.value for one in rest if one.keyword}
    return Items(items=tuple(values.values()), keys=tuple(values))


def add_all(pairs: dict[Any, Value], value: Value) -> bool:
    """Add what another dictionary holds; return whether anything is known of it."""
    if isinstance(value, Items) and value.kind == "dict":
        pairs |= dict(zip(value.keys, value.items, strict=True))
    elif isinstance(value, Array):  # a tree, of which each item is an output
        pairs[items.OTHERS] = items.field_of(value)
    elif isinstance(value, Items) and value.kind == "starred" and value.items:
        pairs[items.OTHERS] = value.items[0]
    else:
        return False
    return True


def method(called: Method, owner: Items, arguments: Sequence[Argument]) -> Value | None:
    """Return the value of a method of a list or dictionary; None if it has no such method."""
    name = called.name
    if name in TAKES:
        key = arguments[0].value if arguments else UNKNOWN
        if owner.kind == "dict" and isinstance(key, Constant) and key.value in owner.keys:
            return items.item(owner, key)
        return _first_held(owner)
    if name == "copy":
        return owner
    values = _first_held(owner)
    if values is None:
        return None
    if name == "values":
        return Items(items=owner.items, kind="starred")
    if name == "items":
        pairs = tuple(
            Items(items=(UNKNOWN, one)) for one in owner.items if isinstance(one, items.HELD)
        )
        return Items(items=pairs, kind="starred")
    return None


def _first_held(owner: Items) -> Value | None:
    outputs = [one for one in owner.items if isinstance(one, items.HELD)]
    return merged_all(outputs) if outputs else None


def grow(run: Interpreter, scope: Scope, called: Method, arguments: Sequence[Argument]) -> None:
    """Note `outputs.append(output)` and the like: the container holds outputs from here on."""
    if called.node is None or not arguments:
        return
    if called.name == "update" and isinstance(called.owner, Items) and called.owner.kind == "dict":
        own = Argument(called.owner, called.node)
        joined = dictionary([own, *arguments])
        if isinstance(joined, Items):
            _hold(run, scope, called.node, joined)
        return
    if called.name not in ADDS:
        return
    added = arguments[-1].value
    values = added.items if called.name == "extend" and isinstance(added, Items) else (added,)
    if not any(isinstance(one, items.HELD) for one in values):
        return
    before = called.owner.items if isinstance(called.owner, Items) else ()
    alike = tuple(one for one in before if type(one) in map(type, values))
    found = Items(items=tuple(dict.fromkeys((*values, *alike))), kind="starred")
    _hold(run, scope, called.node, found)


def _hold(run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Items) -> None:
    match node:
        case cst.Name(name):
            scope.holder(name).variables[name] = value
        case cst.Attribute():
            run.assign(scope, node, value)
        case cst.Subscript(value=cst.Name() | cst.Attribute()):
            owner = run.evaluate(scope, node.value)
            if isinstance(owner, Items):
                run.assign(scope, node, value)
            elif type(owner) is Value:  # a defaultdict of lists
                _hold(run, scope, node.value, Items(items=(value,), kind="starred"))
