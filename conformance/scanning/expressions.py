"""Expressions of a scanned program, evaluated abstractly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import arrays, calls
from conformance.scanning.names import OF_METADATA, canonical
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    UNKNOWN,
    Argument,
    Array,
    Class,
    Constant,
    Donated,
    Function,
    Imported,
    Instance,
    Items,
    Mapped,
    Method,
    Module,
    Partial,
    Reference,
    Stage,
    Transformed,
    Value,
    merged,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter

_MOST_BASES = 5
_PLAIN = re.compile(r"""(["'])[^"'\\\n]+\1""")  # a literal that says itself
# What is still so of the result of an operation.
_CARRIED = frozenset({"device count", "process count", "all devices", "process index"})
_OF_ROWS = frozenset({"rows of this process"})
_INDEXED = frozenset({"on an explicit mesh"})


def evaluate(run: Interpreter, scope: Scope, node: cst.BaseExpression) -> Value:
    """What is known of an expression's value; events of what it does are noted."""
    run.steps += 1
    for kinds, evaluated in _EVALUATED:
        if isinstance(node, kinds):
            return evaluated(run, scope, node)
    return UNKNOWN


def _name(run: Interpreter, scope: Scope, node: cst.Name) -> Value:
    if node.value in ("True", "False", "None"):
        return Constant(value={"True": True, "False": False, "None": None}[node.value])
    value = scope.value(node.value)
    if isinstance(value, Donated):
        used_again(run, scope, node)
        return value.value
    return value


def used_again(run: Interpreter, scope: Scope, node: cst.BaseExpression) -> None:
    """A name whose array was donated is used, for more than what a deleted array still has."""
    if run.of_metadata:
        return
    run.note(
        scope,
        "detected",
        node,
        {"detector": frozenset({"donated again"}), "map": frozenset({"pmap"})},
        {"value": node},
    )


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
    items = []
    for one in node.elements:
        value = evaluate(run, scope, one.value)
        if isinstance(one, cst.StarredElement):
            kind = "starred"
        items.append(value)
    return Items(items=tuple(items), kind=kind)


def _dict(run: Interpreter, scope: Scope, node: cst.Dict) -> Value:
    keys: list[Any] = []
    values: list[Value] = []
    for one in node.elements:
        value = evaluate(run, scope, one.value)
        if isinstance(one, cst.DictElement):
            key = evaluate(run, scope, one.key)
            if isinstance(key, Constant):
                keys.append(key.value)
                values.append(value)
    return Items(items=tuple(values), kind="dict", keys=tuple(keys))


def _binary(run: Interpreter, scope: Scope, node: cst.BinaryOperation) -> Value:
    left = evaluate(run, scope, node.left)
    right = evaluate(run, scope, node.right)
    found = arrays.combined(run, scope, node, left, right)
    if found is not None:
        return found
    if isinstance(left, Items) and isinstance(node.operator, cst.Add):
        return Items(items=left.items, kind="starred")
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(tags=frozenset({"Python number"}), value=None)
    tags = {"leaf", *((left.tags | right.tags) & _CARRIED)}
    if isinstance(node.operator, cst.MatrixMultiply):
        tags.add("product")
    return Value(frozenset(tags))


def _unary(run: Interpreter, scope: Scope, node: cst.UnaryOperation) -> Value:
    value = evaluate(run, scope, node.expression)
    if isinstance(node.operator, cst.Minus) and isinstance(value, Constant):
        number = value.value
        if isinstance(number, int | float) and not isinstance(number, bool):
            return Constant(value=-number, tags=value.tags)
    if isinstance(node.operator, cst.Not):
        return with_tags(UNKNOWN, *(value.tags & {"process 0"}))
    return value if isinstance(value, Array) else with_tags(UNKNOWN, "leaf")


def _comparison(run: Interpreter, scope: Scope, node: cst.Comparison) -> Value:
    value = evaluate(run, scope, node.left)
    found = value.tags
    for one in node.comparisons:
        found |= evaluate(run, scope, one.comparator).tags
    return with_tags(UNKNOWN, *(["process 0"] if "process index" in found else []))


def _formatted(run: Interpreter, scope: Scope, node: cst.FormattedString) -> Value:
    tags = frozenset[str]()
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            value = evaluate(run, scope, part.expression)
            arrays.used(run, scope, part.expression, value, "print")
            tags |= value.tags & _CARRIED
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
        iterable = evaluate(run, inner, part.iter)
        each = iterated(run, inner, part.iter, iterable, "iterate")
        run.assign(inner, part.target, each)
        run.within = (*before, "loop") if "loop" not in before else before
        for condition in part.ifs:
            evaluate(run, inner, condition.test)
        part = part.inner_for_in
    if isinstance(node, cst.DictComp):
        evaluate(run, inner, node.key)
        value = evaluate(run, inner, node.value)
    else:
        value = evaluate(run, inner, node.elt)
    run.within = before
    if isinstance(value, Array):
        return Items(items=(value,), kind="starred")
    return Value(value.tags & {"on one device", "typed key"})


def _either(run: Interpreter, scope: Scope, node: Any) -> Value:
    if isinstance(node, cst.IfExp):
        evaluate(run, scope, node.test)
        one = evaluate(run, scope, node.body)
        return merged(one, evaluate(run, scope, node.orelse))
    one = evaluate(run, scope, node.left)
    return merged(one, evaluate(run, scope, node.right))


def _assigned(run: Interpreter, scope: Scope, node: cst.NamedExpr) -> Value:
    value = evaluate(run, scope, node.value)
    run.assign(scope, node.target, value)
    return value


def _yield(run: Interpreter, scope: Scope, node: cst.Yield) -> Value:
    if isinstance(node.value, cst.From):
        evaluate(run, scope, node.value.item)
    elif node.value is not None:
        evaluate(run, scope, node.value)
    return UNKNOWN


# Attributes


def attribute(run: Interpreter, scope: Scope, node: cst.Attribute) -> Value:
    """The value of an attribute, and the events of looking it up."""
    name = node.attr.value
    before, run.of_metadata = run.of_metadata, run.of_metadata or name in OF_METADATA
    owner = evaluate(run, scope, node.value)
    run.of_metadata = before
    if isinstance(owner, Donated):
        owner = owner.value
    match owner:
        case Reference():
            full = f"{owner.name}.{name}"
            if (inside := run.project.module(full)) is not None:  # of a package without a file
                return Module(name=inside)
            words = frozenset({full, canonical(full)})
            run.note(scope, "name", node, {"name": words, "how": frozenset({"attribute"})})
            return Reference(name=canonical(full))
        case Module():
            inside = run.project.module(f"{owner.name}.{name}")
            if inside is None and owner.name not in run.project.worth_reading:
                return Imported(module=owner.name, name=name)
            exported = run.exported(owner.name)
            if exported is not None and name in exported.variables:
                return exported.variables[name]
            return Module(name=inside) if inside is not None else UNKNOWN
        case Instance():
            value = member(owner, name)
            if isinstance(value, Donated):
                used_again(run, scope, node)
                return value.value
            return value
        case Class():
            return _of_bases(owner, name)
        case Array() | Mapped() | Stage() | Function() | Transformed() | Partial() | Items():
            return arrays.attribute(run, scope, node, owner, name)
    return Method(name=name, owner=owner, node=node.value, tags=frozenset())


def member(owner: Instance, name: str) -> Value:
    """An attribute of an instance: its own, or its class's."""
    if name in owner.attributes:
        return owner.attributes[name]
    value = _of_bases(owner.of, name)
    if isinstance(value, Function):
        if "staticmethod" in value.tags:
            return value
        return Function(node=value.node, scope=value.scope, owner=owner)
    if isinstance(value, Mapped | Transformed | Partial):
        return calls.bound_to(value, owner)
    return value


def _of_bases(of: Class, name: str, depth: int = 0) -> Value:
    if name in of.scope.variables:
        return of.scope.variables[name]
    for base in of.bases:
        if isinstance(base, Class) and depth < _MOST_BASES:
            found = _of_bases(base, name, depth + 1)
            if found is not UNKNOWN:
                return found
    return UNKNOWN


def instance_of(run: Interpreter, of: Class, arguments: Sequence[Argument] = ()) -> Instance:
    """An instance of a class of the program, after its __init__."""
    instance = Instance(of=of)
    init = _of_bases(of, "__init__")
    if isinstance(init, Function):
        run.call(Function(node=init.node, scope=init.scope, owner=instance), arguments)
    return instance


def set_attribute(
    run: Interpreter, scope: Scope, target: cst.Attribute, owner: Value, value: Value
) -> None:
    """Note what setting an attribute means: an option of `jax.config`."""
    if isinstance(owner, Reference):
        full = canonical(f"{owner.name}.{target.attr.value}")
        words = frozenset({full})
        run.note(scope, "name", target, {"name": words, "how": frozenset({"assignment"})})


# Items


def _subscript(run: Interpreter, scope: Scope, node: cst.Subscript) -> Value:
    owner = evaluate(run, scope, node.value)
    indices, bounds = [], frozenset[str]()
    for one in node.slice:
        if isinstance(one.slice, cst.Index):
            indices.append(evaluate(run, scope, one.slice.value))
        elif isinstance(one.slice, cst.Slice):
            for part in (one.slice.lower, one.slice.upper, one.slice.step):
                if part is not None:
                    bounds |= evaluate(run, scope, part).tags
            indices.append(UNKNOWN)
    if isinstance(owner, Items):
        return item(owner, indices[0] if len(indices) == 1 else UNKNOWN)
    if isinstance(owner, Array):
        return arrays.subscript(run, scope, node, owner, indices)
    if owner.tags & {"all devices", "local devices"}:
        return _devices(owner, node.slice[0].slice)
    if owner.tags & _INDEXED:
        words = {"of": frozenset({"explicit mesh"}), "use": frozenset({"index"})}
        run.note(scope, "output", node, words)
    kept = owner.tags & {"typed key", "host", *_OF_ROWS}
    if "process index" in bounds.union(*(one.tags for one in indices)):
        kept |= _OF_ROWS
    return Value(kept)


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.value == "0"


def _devices(owner: Value, index: cst.BaseSlice) -> Value:
    """A device of a list of devices, or a part of the list."""
    of_all = "all devices" in owner.tags
    if not isinstance(index, cst.Slice):
        # Every program of one process names the first device so.
        first = isinstance(index, cst.Index) and _is_zero(index.value)
        return Value(frozenset({"device", *(["device of all"] if of_all and not first else [])}))
    bounds = index.lower is not None or index.upper is not None
    return Value(owner.tags | ({"part of all devices"} if of_all and bounds else set()))


def item(owner: Items, index: Value) -> Value:
    """An item of a display, by a literal index or key."""
    if not isinstance(index, Constant):
        return owner.items[0] if owner.kind == "starred" and owner.items else UNKNOWN
    if owner.kind == "dict":
        found = [v for k, v in zip(owner.keys, owner.items, strict=True) if k == index.value]
        return found[-1] if found else UNKNOWN
    if owner.kind == "starred":
        return owner.items[0] if owner.items else UNKNOWN
    at = index.value
    if type(at) is not int or not -len(owner.items) <= at < len(owner.items):
        return UNKNOWN
    return owner.items[at]


def iterated(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Value, use: str
) -> Value:
    """What each round of a loop over a value has; noted, where it is a mapped function's output."""
    if isinstance(value, Items):
        found: Value | None = None
        for one in value.items:
            found = merged(found, one)
        return found or UNKNOWN
    if isinstance(value, Array):
        return arrays.iterated(run, scope, node, value, use)
    if value.tags & {"all devices", "local devices"}:
        of_all = {"device of all"} if "all devices" in value.tags else set()
        return Value(frozenset({"device"} | of_all))
    return Value(value.tags & {"typed key"} | ({"integer"} if "range" in value.tags else set()))


def unpacked(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    value: Value,
    count: int,
    starred: bool,
) -> list[Value]:
    """The values that several names get."""
    if isinstance(value, Items) and value.kind in ("tuple", "list") and not starred:
        if len(value.items) == count:
            return list(value.items)
        return [UNKNOWN] * count
    if isinstance(value, Array):
        return arrays.unpacked(run, scope, node, value, count)
    return [Value(value.tags & {"typed key"})] * count


def decorated(run: Interpreter, scope: Scope, node: cst.Decorator, value: Value) -> Value:
    """A function or class under a decorator."""
    if isinstance(node.decorator, cst.Name) and node.decorator.value in (
        *("staticmethod", "property", "classmethod", "override", "abstractmethod"),
    ):
        if node.decorator.value == "staticmethod" and isinstance(value, Function):
            return Function(node=value.node, scope=value.scope, tags=frozenset({"staticmethod"}))
        return value if node.decorator.value != "property" else UNKNOWN
    decorator = evaluate(run, scope, node.decorator)
    found = calls.applied(run, scope, node.decorator, decorator, value)
    return value if found is UNKNOWN else found


def dropped(run: Interpreter, scope: Scope, node: cst.Expr, value: Value) -> None:
    """A statement that is an expression: what it returns is not kept."""
    arrays.dropped(run, scope, node, value)


def is_followed(argument: Argument) -> bool:
    """Whether an argument is something that the scanner follows through functions."""
    value = argument.value
    if isinstance(value, Items):
        return any(is_followed(Argument(one, argument.node)) for one in value.items)
    return isinstance(value, Array | Mapped | Transformed | Partial | Function | Instance | Donated)


def fingerprint(value: Value) -> Any:
    """What of an argument a function's result depends on, as far as it is followed."""
    match value:
        case Array():
            return value.of, value.leaf, value.row, id(value.structure), value.facts
        case Constant():
            return type(value.value).__name__, repr(value.value)
        case Reference():
            return value.name
        case Imported():
            return value.module, value.name
        case Items():
            return tuple(map(fingerprint, value.items))
        case Donated():
            return fingerprint(value.value)
        case Mapped() | Function() | Transformed() | Partial() | Instance() | Class():
            return id(value)
    return tuple(sorted(value.tags))


# How each kind of expression is evaluated.
_EVALUATED: tuple[tuple[Any, Callable[[Interpreter, Scope, Any], Value]], ...] = (
    (cst.Name, _name),
    (cst.Attribute, attribute),
    (cst.Call, lambda run, scope, node: calls.call(run, scope, node)),
    (cst.Subscript, _subscript),
    ((cst.Tuple, cst.List, cst.Set), _display),
    (cst.Dict, _dict),
    ((cst.SimpleString, cst.ConcatenatedString), lambda run, scope, node: _text(node)),
    ((cst.Integer, cst.Float), lambda run, scope, node: _number(node.value)),
    (cst.Lambda, lambda run, scope, node: Function(node=node, scope=scope)),
    (cst.BinaryOperation, _binary),
    (cst.UnaryOperation, _unary),
    ((cst.IfExp, cst.BooleanOperation), _either),
    (cst.Comparison, _comparison),
    (cst.NamedExpr, _assigned),
    (cst.Await, lambda run, scope, node: evaluate(run, scope, node.expression)),
    (cst.StarredElement, lambda run, scope, node: evaluate(run, scope, node.value)),
    ((cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp), _comprehension),
    (cst.FormattedString, _formatted),
    (cst.Yield, _yield),
)
