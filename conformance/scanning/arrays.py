"""How a scanned program uses the outputs of mapped functions: indices, slices, loops, fetches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import classes, maps
from conformance.scanning.imports import last_name
from conformance.scanning.names import (
    COUNTS,
    GET_ITEM,
    KEEPING_METHODS,
    OF_ARRAYS,
    OF_TREES,
    RESHAPING_METHODS,
    TAKES_ROWS,
)
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    NOT_OF_ROWS,
    ON_ONE_DEVICE,
    ONE_ROW,
    RESHAPED,
    UNKNOWN,
    WHOLE,
    Argument,
    Array,
    Constant,
    Function,
    Instance,
    Items,
    Mapped,
    Method,
    Stage,
    Transformed,
    Value,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


# Attributes of a tree of arrays that a map returned, by which it is known to be no array.
_SHARDING = frozenset({"sharding", "addressable_shards", "device_buffers", "device_buffer"})
_OF_FUNCTIONS = frozenset({"__name__", "__doc__", "__module__", "__wrapped__", "__signature__"})
_ONE_ROW = frozenset({"index", "negative index", "index variable"})
_KEPT = frozenset({"T", "mT", "at", "real", "imag"})


def used(
    run: Interpreter,
    scope: Scope,
    node: cst.CSTNode,
    value: Value,
    use: str,
    captures: dict[str, cst.CSTNode] | None = None,
    extra: frozenset[str] = frozenset(),
) -> None:
    """Note what is done with an output; do nothing for other values."""
    if isinstance(value, Items):
        for one in value.items:
            if isinstance(one, Array):
                used(run, scope, node, one, use, captures, extra)
                return
    if not isinstance(value, Array):
        return
    if use in ("print", "fetch") and value.row:
        return
    several = ("several processes",) if scope.source.of_several_processes else ()
    attributes = {
        "of": frozenset({f"row of {value.of}" if value.row else value.of}),
        "use": frozenset({use}),
        "within": frozenset({*run.within, *several}),
        "value": value.facts | extra,
        "under": frozenset(run.under),
    }
    run.note(scope, "output", node, attributes, captures)


def attribute(
    run: Interpreter, scope: Scope, node: cst.Attribute, owner: Value, name: str
) -> Value:
    """Return an attribute of an output, a mapped function, or a display."""
    if isinstance(owner, Items):
        if name in owner.keys and name not in OF_TREES:
            return owner.items[owner.keys.index(name)]
        return Method(name=name, owner=owner, node=node.value)
    if isinstance(owner, Mapped) and name in _OF_FUNCTIONS:
        words = {
            "detector": frozenset({"attribute of the function"}),
            "map": frozenset({owner.kind}),
        }
        run.note(scope, "detected", node, words)
    if isinstance(owner, Mapped | Stage | Transformed):
        return Method(name=name, owner=owner, node=node.value)
    if not isinstance(owner, Array):
        return UNKNOWN
    if isinstance(owner.structure, Instance):
        return _of_instance(owner, owner.structure, name)
    if name in _SHARDING:
        used(run, scope, node, owner, f"attribute {name}", {"value": node.value})
        return with_tags(UNKNOWN, "shards") if name == "addressable_shards" else UNKNOWN
    if name in _KEPT:
        return owner
    if name in ("shape", "dtype", "ndim", "size", "nbytes", "aval", "weak_type"):
        return UNKNOWN
    if name in OF_ARRAYS | OF_TREES | {GET_ITEM}:
        return Method(name=name, owner=owner, node=node.value)
    # Neither an array's own: a field of a tree.
    return replace(owner, structure=UNKNOWN, leaf=False)


def _of_instance(owner: Array, structure: Instance, name: str) -> Value:
    """Return an attribute of an output that is an instance of a class of the program."""
    found = classes.member(structure, name)
    if isinstance(found, Function):
        parts: dict[str, Value] = {
            key: part(owner, one) for key, one in structure.attributes.items()
        }
        instance = Instance(of=structure.of, attributes=parts)
        return Function(node=found.node, scope=found.scope, owner=instance, tags=found.tags)
    return part(owner, found)


def subscript(
    run: Interpreter,
    scope: Scope,
    node: cst.Subscript,
    owner: Array,
    indices: Sequence[Value],
    getter: cst.BaseExpression | None = None,
) -> Value:
    """Return the value of `output[...]`: an item of a tree, a row, or several rows."""
    first = node.slice[0].slice
    structure = owner.structure
    if isinstance(first, cst.Index) and len(node.slice) == 1:
        index = indices[0]
        if isinstance(index, Constant) and isinstance(index.value, str):
            return part_of(owner, structure, index.value)
        if isinstance(structure, Items) and not owner.leaf:
            if isinstance(index, Constant):
                return part_of(owner, structure, index.value)
            return replace(owner, structure=UNKNOWN)
    if owner.row:
        return owner
    if NOT_OF_ROWS & owner.facts:
        return replace(owner, leaf=True, structure=UNKNOWN)
    if isinstance(first, cst.Slice):
        if _is_whole(first):
            if all(_keeps_all(one.slice) for one in node.slice[1:]):
                return owner
            used(run, scope, node, owner, "columns", {"value": node.value})
            return replace(owner, leaf=True, structure=UNKNOWN)
        use = "slice"
    else:
        index = indices[0]
        if isinstance(index, Constant) and (index.value is None or index.value is Ellipsis):
            return owner
        if isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis):
            return owner
        use = _index_word(index)
        tree = not owner.leaf and len(node.slice) == 1 and not _counts(first)
        if use == "index variable" and tree and index.tags.isdisjoint(("integer", "leaf", "host")):
            return replace(owner, structure=UNKNOWN)  # as likely a key of a tree
    captures: dict[str, cst.CSTNode] = {"value": node.value}
    if isinstance(first, cst.Index):
        captures["index"] = first.value
    simple = len(node.slice) == 1
    literal = indices[0].value if isinstance(indices[0], Constant) else None
    extra = frozenset({"one index"} if simple else {"several indices"})
    # What a caller passes today is not what a rewriting of the function may write.
    written = isinstance(first, cst.Index) and isinstance(first.value, cst.Integer)
    if simple and type(literal) is int and (written or getter is not None):
        extra |= {f"index={literal}"}
    if not isinstance(owner.structure, Items) and not owner.leaf:
        extra |= {"tree unknown"}
    used(run, scope, getter or node, owner, use, {} if getter else captures, extra)
    facts = owner.facts | ({ONE_ROW} if use in _ONE_ROW and owner.leaf and simple else set())
    return replace(owner, row=True, leaf=True, structure=UNKNOWN, facts=facts)


def _is_whole(index: cst.Slice) -> bool:
    return index.lower is None and index.upper is None and index.step is None


def _keeps_all(index: cst.BaseSlice) -> bool:
    """Return whether an index leaves a dimension as it is, or adds one."""
    if isinstance(index, cst.Slice):
        return _is_whole(index)
    if not isinstance(index, cst.Index):
        return False
    return isinstance(index.value, cst.Ellipsis) or last_name(index.value) in ("None", "newaxis")


def _counts(index: cst.BaseSlice) -> bool:
    """Return whether an index is a name that programs give to integers alone."""
    name = index.value if isinstance(index, cst.Index) else None
    return isinstance(name, cst.Name) and name.value.strip("_").lower() in COUNTS


def _index_word(index: Value) -> str:
    if isinstance(index, Constant) and isinstance(index.value, int):
        return "negative index" if index.value < 0 else "index"
    if isinstance(index, Items):
        return "index list"
    if "arange" in index.tags:
        return "index of arange"
    return "index variable"


def part_of(owner: Array, structure: Value, key: object) -> Value:
    """Return an item of a tree of outputs."""
    found: Value = UNKNOWN
    if isinstance(structure, Items):
        if structure.kind == "dict":
            pairs = zip(structure.keys, structure.items, strict=True)
            found = next((value for k, value in pairs if k == key), UNKNOWN)
        elif isinstance(key, int) and -len(structure.items) <= key < len(structure.items):
            found = structure.items[key]
    if isinstance(owner.axes, Items) and isinstance(key, int) and 0 <= key < len(owner.axes.items):
        axes = owner.axes.items[key]
        words = frozenset(maps.axis_words(axes))
        owner = replace(owner, axes=axes, facts=(owner.facts - NOT_OF_ROWS) | words)
    return part(owner, found)


def _any_part(owner: Array) -> Array:
    """Return an item of a tree of outputs, of whichever key."""
    structure = owner.structure
    if not isinstance(structure, Items) or not structure.items:
        return replace(owner, structure=UNKNOWN, leaf=False)
    if all("leaf" in one.tags for one in structure.items):
        return replace(owner, structure=UNKNOWN, leaf=True)
    return part(owner, structure.items[0])


def part(owner: Array, found: Value) -> Array:
    """Return an output that is the part of another, of which one device returned `found`."""
    if isinstance(found, Items | Instance):
        return replace(owner, structure=found, leaf=False)
    # An item that is no display itself is taken for an array: so it is in nearly every program.
    return replace(owner, structure=UNKNOWN, leaf="leaf" in found.tags)


def iterated(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Array, use: str
) -> Value:
    """Note a loop over an output, or a call that iterates over it."""
    if isinstance(value.structure, Items) and not value.leaf:
        return replace(value, structure=UNKNOWN)
    if value.row:
        return value
    if value.of != "replicate" and WHOLE not in value.facts:
        extra = frozenset[str]() if value.leaf else frozenset({"tree unknown"})
        used(run, scope, node, value, use, {"value": node}, extra)
    return replace(value, row=True, leaf=True, structure=UNKNOWN)


def unpacked(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, value: Array, count: int
) -> list[Value]:
    """Return the values of several names that an output is unpacked to."""
    structure = value.structure
    display = isinstance(structure, Items) and structure.kind in ("tuple", "list")
    if display and isinstance(structure, Items) and len(structure.items) == count:
        return [part_of(value, structure, at) for at in range(count)]
    if value.leaf and not value.row:
        return [iterated(run, scope, node, value, "iterate")] * count
    return [replace(value, structure=UNKNOWN, leaf=False)] * count


def passed_to_jit(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, values: Sequence[Value]
) -> None:
    """Note outputs among the arguments of a jitted function, and what they are mixed with."""
    mixed = _mixed(values)
    for one in values:
        used(run, scope, node, one, "argument of jit")
        if mixed:
            used(run, scope, node, one, "compute", extra=mixed)


def _mixed(values: Sequence[Value]) -> frozenset[str]:
    """Return words for the arrays with which outputs cannot be mixed."""
    tags = {tag for one in values for tag in one.tags}
    mixed = tags & {ON_ONE_DEVICE, "on an explicit mesh", "global array"}
    return frozenset(f"with {word}" for word in mixed)


def combined(
    run: Interpreter, scope: Scope, node: cst.BinaryOperation, left: Value, right: Value
) -> Value | None:
    """Return the value of an operation on two values; None if neither is an output."""
    arrays = [one for one in (left, right) if isinstance(one, Array)]
    if not arrays:
        return None
    captures: dict[str, cst.CSTNode] = {"value": node}
    used(run, scope, node, arrays[0], "compute", captures, _mixed((left, right)))
    return replace(arrays[0], structure=UNKNOWN, leaf=True)


def method(
    run: Interpreter,
    scope: Scope,
    node: cst.Call,
    called: Method,
    arguments: Sequence[Argument],
) -> Value | None:
    """Return the value of a method call on an output; None if arrays have no such method."""
    owner = called.owner
    if not isinstance(owner, Array):
        return None
    capture: dict[str, cst.CSTNode] = {"value": called.node} if called.node is not None else {}
    name = called.name
    if name in KEEPING_METHODS:
        return replace(owner)
    if name in RESHAPING_METHODS:
        used(run, scope, node, owner, "reshape", capture)
        return replace(owner, leaf=True, facts=owner.facts | {RESHAPED})
    if name in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all"):
        used(run, scope, node, owner, "reduce", capture)
        return replace(owner, leaf=True, row=owner.row or not keeps_rows(node))
    if name in TAKES_ROWS:
        return taken(run, scope, node, owner, name, arguments)
    if name in ("item", "tolist"):
        used(run, scope, node, owner, "fetch", capture)
        return UNKNOWN
    if name in ("items", "values", "keys"):
        each = _any_part(owner)
        return Items(
            items=(Items(items=(UNKNOWN, each)) if name == "items" else each,), kind="starred"
        )
    if name in OF_TREES:
        return replace(owner, structure=UNKNOWN, leaf=False)
    if name == "addressable_data":
        return UNKNOWN
    return UNKNOWN


def taken(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    owner: Array,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    """Return what `jnp.take` and its like take out of an output: rows, unless along another axis.

    `arguments` are those of the function `name`, without the output if it is a method of it.
    """
    use, at = TAKES_ROWS[name]
    some = [one.value for one in arguments if one.keyword == "axis"]
    some += [one.value for one in arguments[at : at + 1] if not one.keyword]
    rows = not some or (isinstance(some[0], Constant) and some[0].value in (0, None))
    if owner.row or not rows or NOT_OF_ROWS & owner.facts:
        return replace(owner, leaf=True, structure=UNKNOWN)
    used(run, scope, node, owner, use)
    return replace(owner, row=True, leaf=True, structure=UNKNOWN)


def keeps_rows(node: cst.BaseExpression) -> bool:
    """Return whether a reduction is along axes other than the first, as it is written."""
    for one in node.args if isinstance(node, cst.Call) else ():
        if one.keyword is not None and one.keyword.value == "axis":
            axes = one.value.elements if isinstance(one.value, cst.Tuple) else [one]
            written = [cst.Module([]).code_for_node(axis.value) for axis in axes]
            return all(re.fullmatch(r"-?[1-9]", text) for text in written)
    return False


def dropped(run: Interpreter, scope: Scope, node: cst.Expr, value: Value) -> None:
    """Note a map whose unused output only sums: a hand-made barrier."""
    if not isinstance(value, Array) or value.row or value.of not in ("pmap", "shard_map"):
        return
    if "collective alone" in value.structure.tags or "collective alone" in value.tags:
        run.note(
            scope,
            "detected",
            node.value,
            {"detector": frozenset({"barrier by hand"}), "map": frozenset({value.of})},
            {"value": node.value},
        )
