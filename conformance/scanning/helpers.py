"""What callers pass to functions of a scanned program that nothing in it calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import classes
from conformance.scanning.scopes import Scope
from conformance.scanning.values import PMAP, UNKNOWN, Argument, Array, Class, Function, Value

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


FIXTURE = "fixture"  # of a function: pytest passes its result to parameters of its name

OF_A_PARAMETER = "of a parameter"
_FACTS = frozenset({OF_A_PARAMETER, "tree unknown"})


def assumed(run: Interpreter, function: Function) -> tuple[Argument, ...]:
    """Return the arguments that callers pass, as far as the program says which: outputs to a
    helper that unreplicates, instances to a parameter that is annotated with their class, and
    the results of pytest's fixtures.

    The body of such a helper is `return jax.tree.map(lambda x: x[0], parameter)`, in a file that
    uses pmap.
    """
    node = function.node
    if not isinstance(node, cst.FunctionDef):
        return ()
    trees = _first_rows_of(node) if function.scope.source.uses_pmap else ""
    found = []
    for one in _parameters(node):
        name = one.name.value
        value: Value = Array(of=PMAP, facts=_FACTS) if name == trees else UNKNOWN
        if value is UNKNOWN and (class_of := _class_of(run, function, one)) is not None:
            value = run.instances.get(id(class_of.node), UNKNOWN)
            if value is UNKNOWN and class_of.scope.source is not function.scope.source:
                value = classes.instance_of(run, class_of)
        fixture = function.scope.value(name)
        if isinstance(fixture, Function) and FIXTURE in fixture.tags:
            value = run.call(fixture, ())
        if value is not UNKNOWN:
            found.append(Argument(value, one.name, name))
    return tuple(found)


def takes_instances(run: Interpreter, value: Value) -> bool:
    """Return whether a function has a parameter that is annotated with a class of the program."""
    if not isinstance(value, Function) or not isinstance(value.node, cst.FunctionDef):
        return False
    return any(_class_of(run, value, one) is not None for one in _parameters(value.node))


def _parameters(node: cst.FunctionDef) -> list[cst.Param]:
    params = node.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _class_of(run: Interpreter, function: Function, parameter: cst.Param) -> Class | None:
    """Return the class of the program with which a parameter is annotated."""
    if parameter.annotation is None:
        return _named_like(run, function, parameter.name.value)
    note = parameter.annotation.annotation
    if isinstance(note, cst.SimpleString):
        name = note.raw_value
    elif isinstance(note, cst.Name):
        name = note.value
    else:
        return None
    found = run.looked_up(function.scope.value(name))
    return found if isinstance(found, Class) else None


def _named_like(run: Interpreter, function: Function, name: str) -> Class | None:
    """Return the only class that a file defines or imports and that is called as a parameter is:
    `trainer`, or `state` of a `TrainState`.
    """
    scope: Scope | None = function.scope
    while scope is not None and scope.parent is not None:
        scope = scope.parent
    values = map(run.looked_up, scope.variables.values()) if scope is not None else ()
    some = [one for one in values if isinstance(one, Class)]
    plain = name.replace("_", "").lower()
    alike = [one for one in some if _called(one) == plain]
    alike = alike or [one for one in some if _last_word(one) == plain]
    return alike[0] if len(alike) == 1 else None


def _called(owner: Class) -> str:
    return owner.node.name.value.strip("_").lower()


def _last_word(owner: Class) -> str:
    words = re.findall(r"[A-Z][a-z0-9]+", owner.node.name.value)
    return words[-1].lower() if words else ""


def _first_rows_of(node: cst.FunctionDef) -> str:
    """Return the name of the tree of whose leaves a function returns an item; empty if none."""
    match _statements(node):
        case [
            cst.SimpleStatementLine(
                body=[
                    cst.Return(
                        value=cst.Call(
                            args=[
                                cst.Arg(cst.Lambda(body=cst.Subscript(value=cst.Name()))),
                                cst.Arg(cst.Name(name), keyword=None),
                            ]
                        )
                    )
                ]
            )
        ]:
            return name
    return ""


def _statements(node: cst.FunctionDef) -> list[cst.CSTNode]:
    """Return the statements of a function without its docstring."""
    some = list(node.body.body)
    documented = some and node.get_docstring() is not None
    return some[1:] if documented else some
