"""Statements of a scanned program, evaluated abstractly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import attributes, expressions, imports, items, versions
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    GLOBAL,
    SHARD_MAP,
    UNKNOWN,
    Array,
    Class,
    Constant,
    Donated,
    Function,
    Instance,
    Items,
    Mapped,
    Value,
    merged,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


MOST_ROUNDS = 4  # of a loop over a display: each item by itself
_OF_IMPORTS = ("ImportError", "ModuleNotFoundError", "AttributeError")

Body = cst.BaseSuite | Sequence[cst.BaseStatement]


def block(run: Interpreter, scope: Scope, body: Body) -> bool:
    """Evaluate statements in order; return whether they end by return, raise, continue or break."""
    within = run.within
    ended = _in_order(run, scope, body)
    run.within = within
    return ended


def _in_order(run: Interpreter, scope: Scope, body: Body) -> bool:
    statements: Any = body
    if isinstance(body, cst.IndentedBlock):
        statements = body.body
    elif isinstance(body, cst.SimpleStatementSuite):
        return any(small(run, scope, one) for one in body.body)
    for one in statements:
        if run.exhausted():
            return False
        run.steps += 1
        if statement(run, scope, one):
            return True
    return False


def hoist(scope: Scope, body: Sequence[cst.CSTNode]) -> None:
    """Bind the plain functions of a module, which those above may call once all are defined."""
    for one in body:
        if isinstance(one, cst.FunctionDef) and not one.decorators:
            scope.variables[one.name.value] = Function(node=one, scope=scope)


def statement(run: Interpreter, scope: Scope, node: cst.BaseStatement) -> bool:
    """Evaluate a statement; return whether nothing after it is reached."""
    evaluated = _STATEMENTS.get(type(node))
    return evaluated is not None and bool(evaluated(run, scope, node))


def small(run: Interpreter, scope: Scope, node: cst.BaseSmallStatement) -> bool:
    """Evaluate a simple statement; return whether nothing after it is reached."""
    evaluated = _SMALL_STATEMENTS.get(type(node))
    return evaluated is not None and bool(evaluated(run, scope, node))


def _line(run: Interpreter, scope: Scope, node: cst.SimpleStatementLine) -> bool:
    return any(small(run, scope, one) for one in node.body)


def _while(run: Interpreter, scope: Scope, node: cst.While) -> None:
    run.evaluate(scope, node.test)
    _loop(run, scope, node.body)
    if node.orelse is not None:
        block(run, scope, node.orelse.body)


def _match(run: Interpreter, scope: Scope, node: cst.Match) -> None:
    run.evaluate(scope, node.subject)
    before = dict(scope.variables)
    states = [before]
    for case in node.cases:
        scope.variables = dict(before)
        block(run, scope, case.body)
        states.append(scope.variables)
    scope.taken_over(*states)


def _expression(run: Interpreter, scope: Scope, node: cst.Expr) -> None:
    value = run.evaluate(scope, node.value)
    if "set mesh" in value.tags:  # for all that follows
        run.under = (*run.under, "set mesh")
    expressions.dropped(run, scope, node, value)


def _return(run: Interpreter, scope: Scope, node: cst.Return) -> bool:
    value = run.evaluate(scope, node.value) if node.value is not None else Constant(value=None)
    run.frames[-1].returns.append(value)
    return True


def _raise(run: Interpreter, scope: Scope, node: cst.Raise) -> bool:
    if node.exc is not None:
        run.evaluate(scope, node.exc)
    return True


def _assert(run: Interpreter, scope: Scope, node: cst.Assert) -> None:
    run.evaluate(scope, node.test)


def _delete(run: Interpreter, scope: Scope, node: cst.Del) -> None:
    if isinstance(node.target, cst.Name):
        scope.variables.pop(node.target.value, None)


def _declare(run: Interpreter, scope: Scope, node: cst.Global | cst.Nonlocal) -> None:
    for one in node.names:
        scope.declare(one.name.value, of_module=isinstance(node, cst.Global))


def _leave_round(run: Interpreter, scope: Scope, node: cst.Break | cst.Continue) -> bool:
    return True


def _assignment(
    run: Interpreter, scope: Scope, node: cst.Assign | cst.AnnAssign | cst.AugAssign
) -> None:
    match node:
        case cst.Assign():
            value = versions.tagged(scope, node.value, run.evaluate(scope, node.value))
            for target in node.targets:
                assign(run, scope, target.target, value)
                if isinstance(target.target, cst.Name):
                    scope.alias(target.target.value, imports.dotted(node.value))
        case cst.AnnAssign():
            run.evaluate(scope, node.annotation.annotation)
            if node.value is not None:
                assign(run, scope, node.target, run.evaluate(scope, node.value))
        case cst.AugAssign():
            before = run.evaluate(scope, node.target)
            added = run.evaluate(scope, node.value)
            assign(run, scope, node.target, _augmented(before, added))


def _augmented(before: Value, added: Value) -> Value:
    """Return the value of a variable after `before += added`."""
    if isinstance(before, Items):
        return Items(
            items=(*before.items, *(added.items if isinstance(added, Items) else ())),
            kind="starred",
        )
    for one in (before, added):
        if isinstance(one, Array):
            return replace(one, structure=UNKNOWN, leaf=True)
    return UNKNOWN


def assign(run: Interpreter, scope: Scope, target: cst.BaseExpression, value: Value) -> None:
    """Bind a name, an attribute or several names to a value."""
    match target:
        case cst.Name():
            scope.bind(target.value, value)
        case cst.Attribute():
            owner = run.evaluate(scope, target.value)
            if isinstance(owner, Instance):
                owner.attributes[target.attr.value] = value
            scope.forget(imports.dotted(target))
            attributes.set_attribute(run, scope, target, owner, value)
        case cst.Tuple() | cst.List():
            names = [one.value for one in target.elements]
            starred = [isinstance(one, cst.StarredElement) for one in target.elements]
            star = starred.index(True) if True in starred else None
            parts = items.unpacked(run, scope, target, value, len(names), star)
            for name, part in zip(names, parts, strict=True):
                assign(run, scope, name, part)
        case cst.Subscript():
            owner = run.evaluate(scope, target.value)
            _set_item(run, scope, target, owner, value)


def _set_item(
    run: Interpreter, scope: Scope, target: cst.Subscript, owner: Value, value: Value
) -> None:
    """Bind an item of a dictionary that is in a variable or in an attribute of an instance."""
    index = target.slice[0].slice
    if not isinstance(owner, Items) or not isinstance(index, cst.Index) or len(target.slice) > 1:
        return
    key = run.evaluate(scope, index.value)
    found = items.with_item(owner, key, value)
    match target.value:
        case cst.Name(name):
            scope.holder(name).variables[name] = found
        case cst.Attribute(value=instance, attr=cst.Name(name)):
            container = run.evaluate(scope, instance)
            if isinstance(container, Instance):
                container.attributes[name] = found


def _define(run: Interpreter, scope: Scope, node: cst.FunctionDef) -> None:
    value: Value = Function(node=node, scope=scope)
    below: cst.Decorator | None = None
    for one in reversed(node.decorators):
        value = expressions.decorated(run, scope, one, value, below)
        below = one
    scope.variables[node.name.value] = value


def _define_class(run: Interpreter, scope: Scope, node: cst.ClassDef) -> None:
    bases = tuple(run.evaluate(scope, one.value) for one in node.bases)
    value = Class(
        node=node,
        scope=Scope(scope.source, parent=scope, of_class=True),
        bases=bases,
    )
    block(run, value.scope, node.body)
    scope.variables[node.name.value] = value


def _if(run: Interpreter, scope: Scope, node: cst.If) -> bool:
    test = run.evaluate(scope, node.test)
    known = versions.holds(scope, node.test, run.jax)
    # A function that returns one literal: a way that was switched off.
    if isinstance(node.test, cst.Call) and isinstance(test, Constant) and test.value is False:
        known = False
    if known is None:
        known = _is_none(scope, node.test)
    if known is not None:
        return _only_way(run, scope, node, taken=known)
    before, attributes = dict(scope.variables), _attributes(scope)
    outer = run.within
    if (name := _on_one_device(scope, node.test)) is not None:
        scope.variables[name] = UNKNOWN
    # What follows is run by one process alone.
    one_process = ("one process",) if "process 0" in test.tags else ()
    run.within = (*outer, *one_process, *versions.names_present(run, scope, node.test))
    ended = block(run, scope, node.body)
    run.within = outer
    after, set_here = scope.variables, _restored(attributes)
    scope.variables = before
    _set_once(scope, node.test, set_here)
    other = False
    if isinstance(node.orelse, cst.If):
        other = _if(run, scope, node.orelse)
    elif node.orelse is not None:
        present = versions.names_present(run, scope, node.test, holding=False)
        run.within = (*outer, *one_process, *present)
        other = block(run, scope, node.orelse.body)
        run.within = outer
    ways = [state for state, end in ((after, ended), (scope.variables, other)) if not end]
    scope.taken_over(*(ways or [after]))
    for instance, values in set_here:
        for name, value in values.items():
            instance.attributes[name] = merged(value, instance.attributes.get(name))
    if one_process and ended != other:  # one process has left: the others run what follows
        run.within = (*outer, *one_process)
    return ended and other and node.orelse is not None


def _is_none(scope: Scope, test: cst.BaseExpression) -> bool | None:
    """Return whether `name is None` or `name is not None` holds; None if unknown."""
    match test:
        case cst.Comparison(
            left=cst.Name(name),
            comparisons=[
                cst.ComparisonTarget(
                    operator=cst.Is() | cst.IsNot() as operator, comparator=cst.Name("None")
                )
            ],
        ):
            value = scope.variables.get(name, UNKNOWN)
            none = isinstance(value, Constant) and value.value is None
            if none or isinstance(value, Function | Mapped):
                return none is isinstance(operator, cst.Is)
    return None


_States = list[tuple[Instance, dict[str, Value]]]


def _set_once(scope: Scope, test: cst.BaseExpression, states: _States) -> None:
    """After `if self.x is None: self.x = value`, let the other way run with that value.

    The first call sets the attribute, and the calls after it find it set.
    """
    match test:
        case cst.Comparison(
            left=cst.Attribute(value=cst.Name(name), attr=cst.Name(attribute)),
            comparisons=[
                cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None")),
            ],
        ):
            owner = scope.value(name)
            for instance, values in states:
                none = Constant(value=None)
                if instance is owner and instance.attributes.get(attribute) == none:
                    instance.attributes[attribute] = values.get(attribute, none)


def _attributes(scope: Scope) -> _States:
    """Return the instances in a scope's variables, each with its attributes now."""
    some = (one for one in scope.variables.values() if isinstance(one, Instance))
    return [(one, dict(one.attributes)) for one in some]


def _restored(states: _States) -> _States:
    """Set the attributes back to what they were, and return what they had become."""
    found = [(one, dict(one.attributes)) for one, _ in states]
    for one, before in states:
        one.attributes.clear()
        one.attributes.update(before)
    return found


def _on_one_device(scope: Scope, test: cst.BaseExpression) -> str | None:
    """Return the name of the array that a condition shows to be on one device, no pmap's output,
    or on devices of this process, no global array.
    """
    match test:
        case cst.Attribute(value=cst.Name(name), attr=cst.Name("is_fully_addressable")):
            value = scope.variables.get(name)
            return name if isinstance(value, Array) and value.of in (GLOBAL, SHARD_MAP) else None
        case cst.Call(
            func=cst.Name("isinstance"),
            args=[
                cst.Arg(cst.Attribute(value=cst.Name(name), attr=cst.Name("sharding"))),
                cst.Arg(cst.Attribute(attr=cst.Name("SingleDeviceSharding"))),
            ],
        ) if name in scope.variables:
            return name
    return None


def _only_way(run: Interpreter, scope: Scope, node: cst.If, *, taken: bool) -> bool:
    """Evaluate the way that the JAX of the new side takes."""
    if taken:
        return block(run, scope, node.body)
    if isinstance(node.orelse, cst.If):
        return _if(run, scope, node.orelse)
    return node.orelse is not None and block(run, scope, node.orelse.body)


def _for(run: Interpreter, scope: Scope, node: cst.For) -> None:
    iterable = run.evaluate(scope, node.iter)
    each = items.iterated(run, scope, node.iter, iterable, "iterate")
    rounds: Sequence[Value] = (each, each)
    display = isinstance(iterable, Items) and iterable.kind in ("tuple", "list")
    if display and isinstance(iterable, Items) and 1 < len(iterable.items) <= MOST_ROUNDS:
        rounds = iterable.items
    _loop(run, scope, node.body, node.target, rounds)
    if node.orelse is not None:
        block(run, scope, node.orelse.body)


def _loop(
    run: Interpreter,
    scope: Scope,
    body: cst.BaseSuite,
    target: cst.BaseExpression | None = None,
    rounds: Sequence[Value] = (UNKNOWN, UNKNOWN),
) -> None:
    """Evaluate a loop's body at least twice, because a round begins with the last one's values."""
    before = dict(scope.variables)
    outer = run.within
    run.within = (*outer, "loop") if "loop" not in outer else outer
    for each in rounds:
        if target is not None:
            assign(run, scope, target, each)
        block(run, scope, body)
    run.within = outer
    scope.taken_over(scope.variables, before)


def _with(run: Interpreter, scope: Scope, node: cst.With) -> bool:
    entered: list[str] = []
    for item in node.items:
        value = run.evaluate(scope, item.item)
        if item.asname is not None:
            assign(run, scope, item.asname.name, value)
        entered += [tag for tag in ("set mesh",) if tag in value.tags]
    before = run.under
    run.under = (*before, *entered)
    ended = block(run, scope, node.body)
    run.under = before
    return ended


def _try(run: Interpreter, scope: Scope, node: cst.Try | cst.TryStar) -> bool:
    before = dict(scope.variables)
    within = run.within
    run.within = (*within, "try") if node.handlers and "try" not in within else within
    if any(map(_is_of_imports, node.handlers)):
        run.within = (*run.within, "tried")
    ended = block(run, scope, node.body)
    run.within = within
    states = [scope.variables] if not ended else []
    attributes = _attributes(scope)
    # What the body donated may be gone when it raises.
    donated = {k: v for k, v in scope.variables.items() if isinstance(v, Donated)}
    for handler in node.handlers:
        scope.variables = {**before, **donated}
        run.within = (*within, "fallback") if _is_of_imports(handler) else within
        if not block(run, scope, handler.body):
            states.append(scope.variables)
    run.within = within
    for instance, values in attributes:
        for name, value in values.items():
            instance.attributes[name] = merged(value, instance.attributes.get(name))
    scope.taken_over(*(states or [before]))
    for extra in (node.orelse, node.finalbody):
        if extra is not None:
            ended = block(run, scope, extra.body) or ended
    return ended and not states


def _is_of_imports(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    """Return whether a handler catches failed imports, or names that a module does not have."""
    caught = handler.type
    names = [one.value for one in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    return any(isinstance(one, cst.Name) and one.value in _OF_IMPORTS for one in names)


# How each kind of statement is evaluated; True if nothing after it is reached. Looked up by type:
# LibCST's classes are abstract base classes, of which each `isinstance` calls a function.
_Evaluated = Callable[[Any, Scope, Any], bool | None]
_STATEMENTS: Mapping[type[cst.CSTNode], _Evaluated] = {
    cst.SimpleStatementLine: _line,
    cst.FunctionDef: _define,
    cst.ClassDef: _define_class,
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
}
_SMALL_STATEMENTS: Mapping[type[cst.CSTNode], _Evaluated] = {
    cst.Expr: _expression,
    cst.Assign: _assignment,
    cst.AnnAssign: _assignment,
    cst.AugAssign: _assignment,
    cst.Return: _return,
    cst.Raise: _raise,
    cst.Assert: _assert,
    cst.Import: imports.import_modules,
    cst.ImportFrom: imports.import_names,
    cst.Del: _delete,
    cst.Global: _declare,
    cst.Nonlocal: _declare,
    cst.Break: _leave_round,
    cst.Continue: _leave_round,
}
