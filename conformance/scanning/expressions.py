"""Abstract evaluation of a scanned program's expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import (
    arrays,
    attributes,
    calls,
    containers,
    donations,
    helpers,
    items,
    versions,
)
from conformance.scanning.names import IDENTITY, OPTIONS_OF_PMAP, PROPERTIES
from conformance.scanning.results import COMPUTED, maps_around
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    ON_ONE_DEVICE,
    UNKNOWN,
    Argument,
    Array,
    Constant,
    Donated,
    Function,
    Instance,
    Items,
    Mapped,
    Partial,
    Reference,
    Transformed,
    Value,
    merged,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


_PLAIN = re.compile(r"""(["'])[^"'\\\n]+\1""")  # a literal that says itself
# What is still so of the result of an operation.
_COUNTED = frozenset({"device count", "process count", "all devices", "process index"})
_CARRIED = _COUNTED | {ON_ONE_DEVICE}


def _name(run: Interpreter, scope: Scope, node: cst.Name) -> Value:
    if node.value in ("True", "False", "None"):
        return Constant(value={"True": True, "False": False, "None": None}[node.value])
    value = scope.value(node.value)
    if isinstance(value, Donated):
        donations.used_again(run, scope, node, value)
        return value.value
    if "on an explicit mesh" in value.tags and (around := maps_around(run.under)):
        words = {
            "detector": frozenset({"closed over an explicit array"}),
            "map": frozenset({around[-1]}),
        }
        run.note(scope, "detected", node, words)
    return value


def _number(text: str) -> Value:
    plain = text.replace("_", "")
    try:
        value: Any = int(plain, 0)
    except ValueError:
        value = float(plain)
    return Constant(value=value, tags=frozenset({"Python number"}))


def _text(node: cst.SimpleString | cst.ConcatenatedString) -> Value:
    if isinstance(node, cst.SimpleString) and _PLAIN.fullmatch(node.value):
        return Constant(value=node.value[1:-1])
    try:
        return Constant(value=node.evaluated_value)
    except (ValueError, SyntaxError):
        return UNKNOWN


def _display(run: Interpreter, scope: Scope, node: cst.Tuple | cst.List | cst.Set) -> Value:
    kind = {cst.Tuple: "tuple", cst.List: "list"}.get(type(node), "set")
    found = []
    for one in node.elements:
        value = run.evaluate(scope, one.value)
        if isinstance(one, cst.StarredElement):
            kind = "starred"
        _option_in_a_table(run, scope, one.value, value)
        found.append(value)
    return Items(items=tuple(found), kind=kind)


def _option_in_a_table(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Value
) -> None:
    """Note an option's name in a display, from which a program sets it elsewhere."""
    if isinstance(value, Constant) and value.value in OPTIONS_OF_PMAP:
        words = {"name": frozenset({value.value}), "how": frozenset({"text"})}
        run.note(scope, "name", node, words)


def _dict(run: Interpreter, scope: Scope, node: cst.Dict) -> Value:
    pairs: dict[Any, Value] = {}
    for one in node.elements:
        value = run.evaluate(scope, one.value)
        if isinstance(one, cst.DictElement):
            key = run.evaluate(scope, one.key)
            _option_in_a_table(run, scope, one.key, key)
            if isinstance(key, Constant):
                pairs[key.value] = value
        else:
            containers.add_all(pairs, value)
    return Items(items=tuple(pairs.values()), kind="dict", keys=tuple(pairs))


def _binary(run: Interpreter, scope: Scope, node: cst.BinaryOperation) -> Value:
    left = run.evaluate(scope, node.left)
    right = run.evaluate(scope, node.right)
    found = arrays.combined(run, scope, node, left, right)
    if found is not None:
        return found
    if isinstance(left, Items) and isinstance(node.operator, cst.Add | cst.BitOr):
        others = right.items if isinstance(right, Items) else ()
        return Items(items=(*left.items, *others), kind="starred")
    if "all devices" in left.tags & right.tags and isinstance(node.operator, cst.Add):
        return with_tags(left, "joined parts of all devices")
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(tags=frozenset({"Python number"}), value=None)
    tags = {"leaf", COMPUTED, *((left.tags | right.tags) & _CARRIED)}
    if isinstance(node.operator, cst.MatrixMultiply):
        tags.add("product")
    return Value(frozenset(tags))


def _unary(run: Interpreter, scope: Scope, node: cst.UnaryOperation) -> Value:
    value = run.evaluate(scope, node.expression)
    if isinstance(node.operator, cst.Minus) and isinstance(value, Constant):
        number = value.value
        if isinstance(number, int | float) and not isinstance(number, bool):
            return Constant(value=-number, tags=value.tags)
    if isinstance(node.operator, cst.Not):
        return with_tags(UNKNOWN, *(value.tags & {"process 0"}))
    if isinstance(value, Array):
        return value
    return with_tags(UNKNOWN, "leaf", *(value.tags & {ON_ONE_DEVICE}))


def _comparison(run: Interpreter, scope: Scope, node: cst.Comparison) -> Value:
    before = run.metadata
    if all(isinstance(one.operator, cst.Is | cst.IsNot) for one in node.comparisons):
        run.metadata = before or IDENTITY
    value = run.evaluate(scope, node.left)
    found = value.tags
    for one in node.comparisons:
        found |= run.evaluate(scope, one.comparator).tags
    run.metadata = before
    return with_tags(UNKNOWN, *(["process 0"] if "process index" in found else []))


def _formatted(run: Interpreter, scope: Scope, node: cst.FormattedString) -> Value:
    tags = frozenset[str]()
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            value = run.evaluate(scope, part.expression)
            arrays.used(run, scope, part.expression, value, "print")
            tags |= value.tags & _COUNTED
    return Value(tags)


def _comprehension(
    run: Interpreter,
    scope: Scope,
    node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp,
) -> Value:
    inner = Scope(scope.source, parent=scope)
    before = run.within
    part: cst.CompFor | None = node.for_in
    while part is not None:
        iterable = run.evaluate(inner, part.iter)
        each = items.iterated(run, inner, part.iter, iterable, "iterate")
        run.assign(inner, part.target, each)
        run.within = (*before, "loop") if "loop" not in before else before
        for condition in part.ifs:
            run.evaluate(inner, condition.test)
        part = part.inner_for_in
    if isinstance(node, cst.DictComp):
        run.evaluate(inner, node.key)
        value = run.evaluate(inner, node.value)
    else:
        value = run.evaluate(inner, node.elt)
    run.within = before
    if isinstance(value, Array | Mapped | Function | Partial | Transformed | Items | Instance):
        return Items(items=(value,), kind="starred")
    return Value(value.tags & {ON_ONE_DEVICE, "typed key"})


def _lambda(run: Interpreter, scope: Scope, node: cst.Lambda) -> Value:
    found = Function(node=node, scope=scope)
    run.lambdas.setdefault(id(node), found)
    return found


def _either(run: Interpreter, scope: Scope, node: Any) -> Value:
    if isinstance(node, cst.IfExp):
        run.evaluate(scope, node.test)
        known = versions.holds(scope, node.test, run.jax)
        if known is not None:
            return run.evaluate(scope, node.body if known else node.orelse)
        outer = run.within
        run.within = (*outer, *versions.names_present(run, scope, node.test))
        one = run.evaluate(scope, node.body)
        run.within = (*outer, *versions.names_present(run, scope, node.test, holding=False))
        other = run.evaluate(scope, node.orelse)
        run.within = outer
        return merged(one, other)
    one = run.evaluate(scope, node.left)
    return merged(one, run.evaluate(scope, node.right))


def _assigned(run: Interpreter, scope: Scope, node: cst.NamedExpr) -> Value:
    value = run.evaluate(scope, node.value)
    run.assign(scope, node.target, value)
    return value


def _yield(run: Interpreter, scope: Scope, node: cst.Yield) -> Value:
    if isinstance(node.value, cst.From):
        each = run.evaluate(scope, node.value.item)
        run.frames[-1].yields += each.items if isinstance(each, Items) else ()
    elif node.value is not None:
        run.frames[-1].yields.append(run.evaluate(scope, node.value))
    return UNKNOWN


def decorated(
    run: Interpreter, scope: Scope, node: cst.Decorator, value: Value, below: cst.Decorator | None
) -> Value:
    """Return the value of a decorated function; `below` is the decorator that made `value`."""
    if isinstance(node.decorator, cst.Name) and node.decorator.value in (
        *("staticmethod", "property", "classmethod", "override", "abstractmethod"),
    ):
        return _of_kind(node.decorator.value, value)
    decorator = run.evaluate(scope, node.decorator)
    if isinstance(decorator, Reference) and decorator.name in PROPERTIES:
        return _of_kind("property", value)
    if isinstance(value, Function) and _is_fixture(scope, node.decorator):
        return replace(value, tags=value.tags | {helpers.FIXTURE})
    argument = Argument(value, node.decorator if below is None else below.decorator)
    found = calls.applied(run, scope, node.decorator, decorator, argument)
    return value if type(found) is Value else found  # nothing is known of what it returns


def _of_kind(kind: str, value: Value) -> Value:
    """Return a method with a tag for how it is looked up."""
    if kind in ("staticmethod", "property", "classmethod") and isinstance(value, Function):
        return Function(node=value.node, scope=value.scope, tags=frozenset({kind}))
    return value


def _is_fixture(scope: Scope, node: cst.BaseExpression) -> bool:
    """Return whether a decorator is `pytest.fixture`, called or not."""
    function = node.func if isinstance(node, cst.Call) else node
    match function:
        case cst.Name():
            value = scope.value(function.value)
            return isinstance(value, Reference) and value.name == "pytest.fixture"
        case cst.Attribute(value=cst.Name(owner), attr=cst.Name("fixture")):
            module = scope.value(owner)
            return isinstance(module, Reference) and module.name == "pytest"
    return False


def dropped(run: Interpreter, scope: Scope, node: cst.Expr, value: Value) -> None:
    """Note a statement that is an expression, whose value is not kept."""
    arrays.dropped(run, scope, node, value)


# How each kind of expression is evaluated.
EVALUATED: Mapping[type[cst.BaseExpression], Callable[[Interpreter, Scope, Any], Value]] = {
    cst.Name: _name,
    cst.Attribute: lambda run, scope, node: attributes.attribute(run, scope, node),
    cst.Call: lambda run, scope, node: calls.call(run, scope, node),
    cst.Subscript: lambda run, scope, node: items.subscript(run, scope, node),
    cst.Tuple: _display,
    cst.List: _display,
    cst.Set: _display,
    cst.Dict: _dict,
    cst.SimpleString: lambda run, scope, node: _text(node),
    cst.ConcatenatedString: lambda run, scope, node: _text(node),
    cst.Integer: lambda run, scope, node: _number(node.value),
    cst.Float: lambda run, scope, node: _number(node.value),
    cst.Lambda: _lambda,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.IfExp: _either,
    cst.BooleanOperation: _either,
    cst.Comparison: _comparison,
    cst.NamedExpr: _assigned,
    cst.Await: lambda run, scope, node: run.evaluate(scope, node.expression),
    cst.StarredElement: lambda run, scope, node: run.evaluate(scope, node.value),
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _comprehension,
    cst.FormattedString: _formatted,
    cst.Yield: _yield,
}
