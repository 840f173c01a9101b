"""Items in a scanned program: subscripts, loops over a value, several names for one value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import arrays
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    PART_OF_DEVICES,
    UNKNOWN,
    Argument,
    Array,
    Constant,
    Function,
    Instance,
    Items,
    Mapped,
    Method,
    Partial,
    Transformed,
    Value,
    merged_all,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


_OF_ROWS = frozenset({"rows of this process"})
_INDEXED = frozenset({"on an explicit mesh"})
OTHERS = ...  # the key of what a dictionary holds under keys that are not written
HELD = (Array, Mapped, Function, Partial, Transformed, Instance, Items)


def field_of(owner: Array) -> Array:
    """Return an item of a tree of outputs of which nothing more is known."""
    return replace(owner, structure=UNKNOWN, leaf=False)


def subscript(run: Interpreter, scope: Scope, node: cst.Subscript) -> Value:
    """Evaluate `owner[index]`, and note the event if `owner` is an array, devices or a mesh."""
    owner = run.evaluate(scope, node.value)
    indices, bounds = [], frozenset[str]()
    for one in node.slice:
        if isinstance(one.slice, cst.Index):
            indices.append(run.evaluate(scope, one.slice.value))
        elif isinstance(one.slice, cst.Slice):
            for part in (one.slice.lower, one.slice.upper, one.slice.step):
                if part is not None:
                    bounds |= run.evaluate(scope, part).tags
            indices.append(UNKNOWN)
    if isinstance(owner, Items) and isinstance(node.slice[0].slice, cst.Slice):
        return replace(owner, kind="starred", keys=())  # some of the items
    if isinstance(owner, Items):
        return item(owner, indices[0] if len(indices) == 1 else UNKNOWN)
    if isinstance(owner, Method) and isinstance(owner.owner, Array):  # a field that is called so
        owner = replace(owner.owner, structure=UNKNOWN, leaf=False)
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


def by_call(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, owner: Argument, index: Argument
) -> Value:
    """Return the value of `owner[index]`, written as a call."""
    if isinstance(owner.value, Items):
        return item(owner.value, index.value)
    if not isinstance(owner.value, Array):
        return UNKNOWN
    written = cst.Subscript(owner.node, [cst.SubscriptElement(cst.Index(index.node))])
    return arrays.subscript(run, scope, written, owner.value, [index.value], node)


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.value == "0"


def _devices(owner: Value, index: cst.BaseSlice) -> Value:
    """Return a device of a list of devices, or a part of the list."""
    of_all = "all devices" in owner.tags
    if not isinstance(index, cst.Slice):
        # Every program of one process names the first device so.
        first = isinstance(index, cst.Index) and _is_zero(index.value)
        return Value(frozenset({"device", *(["device of all"] if of_all and not first else [])}))
    bounds = index.lower is not None or index.upper is not None
    part = {PART_OF_DEVICES, *(["part of all devices"] if of_all else [])}
    return Value(owner.tags | (part if bounds else set()))


def item(owner: Items, index: Value) -> Value:
    """Return an item of a display, by a literal index or key."""
    if not isinstance(index, Constant):
        if owner.kind == "starred":
            return owner.items[0] if owner.items else UNKNOWN
        return _any_item(owner)
    if owner.kind == "dict":
        pairs: dict[Any, Value] = dict(zip(owner.keys, owner.items, strict=True))
        key = index.value if index.value in pairs else OTHERS
        return pairs.get(key, UNKNOWN)
    if owner.kind == "starred":
        return owner.items[0] if owner.items else UNKNOWN
    at = index.value
    if type(at) is not int or not -len(owner.items) <= at < len(owner.items):
        return UNKNOWN
    return owner.items[at]


def _any_item(owner: Items) -> Value:
    """Return an item by a key that is known at run time only, if all items are of one kind."""
    kinds = {type(one) for one in owner.items}
    if len(kinds) != 1 or not isinstance(owner.items[0], HELD):
        return UNKNOWN
    return merged_all(owner.items)


def with_item(owner: Items, key: Value, value: Value) -> Items:
    """Return a dictionary or list after `owner[key] = value`."""
    if owner.kind == "dict" and isinstance(key, Constant):
        pairs = dict(zip(owner.keys, owner.items, strict=True)) | {key.value: value}
        return replace(owner, items=tuple(pairs.values()), keys=tuple(pairs))
    if isinstance(value, Array | Mapped | Items):  # by a key that is known at run time only
        return Items(items=(value,), kind="starred")
    return owner


def iterated(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Value, use: str
) -> Value:
    """Return the value in each round of a loop, noting loops over a mapped function's output."""
    if isinstance(value, Items):
        return merged_all(value.items)
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
    star: int | None,
) -> list[Value]:
    """Return the values that several names get; `star` is the place of the starred one."""
    if isinstance(value, Items) and value.kind in ("tuple", "list"):
        return _of_display(value, count, star)
    if isinstance(value, Items) and value.kind == "starred":
        each = iterated(run, scope, node, value, "iterate")
        return [Items(items=(each,), kind="starred") if at == star else each for at in range(count)]
    if isinstance(value, Array):
        return arrays.unpacked(run, scope, node, value, count)
    if value.tags & {"all devices", "local devices"}:
        each = iterated(run, scope, node, value, "iterate")
        first = Value(frozenset({"device"}))  # which every program of one process names so
        found = [first, *[each] * (count - 1)]
        return [Value(value.tags) if at == star else one for at, one in enumerate(found)]
    return [Value(value.tags & {"typed key"})] * count


def _of_display(value: Items, count: int, star: int | None) -> list[Value]:
    items = value.items
    if star is None:
        return list(items) if len(items) == count else [UNKNOWN] * count
    after = count - star - 1
    if len(items) < count - 1:
        return [UNKNOWN] * count
    rest = Items(items=items[star : len(items) - after], kind="list")
    return [*items[:star], rest, *(items[-after:] if after else ())]
