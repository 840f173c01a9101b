"""Calls in a scanned program: of JAX's functions, of mapped functions, of the program's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import arrays, classes, donations, maps, methods, references, uses
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    GLOBAL,
    REPLICATES,
    SPLITS,
    UNKNOWN,
    Argument,
    Array,
    Choice,
    Class,
    Donated,
    Function,
    Getter,
    Imported,
    Instance,
    Items,
    Mapped,
    Method,
    Partial,
    Reference,
    Stage,
    Transformed,
    Value,
    merged_all,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def call(run: Interpreter, scope: Scope, node: cst.Call) -> Value:
    """Return the value of a call."""
    before, run.passed_to_map = run.passed_to_map, False
    function = run.evaluate(scope, node.func)
    run.passed_to_map = isinstance(function, Mapped)
    arguments = [passed for one in node.args for passed in _passed(run, scope, one)]
    run.passed_to_map = before
    return called(run, scope, node, function, arguments)


def _passed(run: Interpreter, scope: Scope, node: cst.Arg) -> list[Argument]:
    """Return the arguments of a call, with `**options` and `*args` expanded if their items are
    known.
    """
    value = run.evaluate(scope, node.value)
    if node.star == "*" and isinstance(value, Items) and value.kind in ("tuple", "list"):
        return [
            Argument(one, cst.Subscript(node.value, [cst.SubscriptElement(cst.Index(number))]))
            for at, one in enumerate(value.items)
            if (number := cst.Integer(str(at)))
        ]
    if node.star == "**" and isinstance(value, Items) and value.kind == "dict":
        pairs = zip(value.keys, value.items, strict=True)
        return [Argument(one, node.value, key) for key, one in pairs if isinstance(key, str)]
    keyword = node.keyword.value if node.keyword is not None else ""
    return [Argument(value, node.value, keyword, node.star)]


def applied(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, decorator: Value, argument: Argument
) -> Value:
    """Return the value of a decorated function; UNKNOWN if the decorator's effect is unknown."""
    if isinstance(decorator, Reference | Partial | Function | Choice | Transformed | Class):
        return run.called(scope, node, decorator, [argument])
    return UNKNOWN


def called(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    function: Value,
    arguments: Sequence[Argument],
) -> Value:
    """Return the value of calling a value."""
    match function:
        case Reference():
            return references.call(run, scope, node, function.name, arguments)
        case Partial():
            kept = [one for one in function.arguments if not one.keyword]
            named = [one for one in function.arguments if one.keyword]
            return run.called(scope, node, function.function, [*kept, *arguments, *named])
        case Mapped():
            return maps.call(run, scope, node, function, arguments)
        case Transformed():
            return _transformed(run, scope, node, function, arguments)
        case Function():
            found = run.call(function, arguments, defaults=True)
            for at in run.donated if not any(one.star or one.keyword for one in arguments) else ():
                donated = Donated(value=arguments[at].value)
                donations.mark(scope, arguments[at].node, donated)
            return found
        case Choice():
            some = function.functions
            return merged_all(run.called(scope, node, one, arguments) for one in some)
        case Class():
            return classes.instance_of(run, function, arguments)
        case Instance():
            method = classes.member(function, "__call__")
            return UNKNOWN if method is UNKNOWN else run.called(scope, node, method, arguments)
        case Getter() if arguments and isinstance(arguments[0].value, Array):
            each = cst.Subscript(function.node, [cst.SubscriptElement(cst.Index(function.node))])
            return arrays.subscript(run, scope, each, arguments[0].value, [function.index], node)
        case Stage():
            return _stage(run, scope, node, function)
        case Imported() if any(uses.holds_array(one.value) for one in arguments):
            return run.called(scope, node, run.looked_up(function), arguments)
        case Method():
            return methods.call(run, scope, node, function, arguments)
    return UNKNOWN


def _transformed(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    function: Transformed,
    arguments: Sequence[Argument],
) -> Value:
    inner = function.function
    if function.kind == "jit":
        arrays.passed_to_jit(run, scope, node, [one.value for one in arguments])
    if isinstance(inner, Function):
        found = run.call(inner, arguments, (function.kind,))
        if function.kind == "grad":
            return UNKNOWN
        if REPLICATES in function.tags and isinstance(found, Array):
            return UNKNOWN
        if isinstance(found, Array | Items):
            return found
        of_all = any(isinstance(one.value, Array) and one.value.of == GLOBAL for one in arguments)
        return Array(of=GLOBAL) if of_all and SPLITS in function.tags else Value(found.tags)
    if isinstance(inner, Mapped):
        return Array(of=inner.kind, structure=UNKNOWN, facts=frozenset(inner.facts["value"]))
    return UNKNOWN


def _stage(run: Interpreter, scope: Scope, node: cst.CSTNode, stage: Stage) -> Value:
    maps.note_stage(run, scope, node, stage.mapped, "call")
    return Array(of=f"{stage.mapped.kind} stage", structure=stage.mapped.returns)
