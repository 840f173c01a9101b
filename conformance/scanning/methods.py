"""Methods of values of a scanned program that are no instances of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import arrays, containers, items, maps
from conformance.scanning.names import (
    CALLING_METHODS,
    GET_ITEM,
    KEEPING_METHODS,
    REDUCING_METHODS,
    RESHAPING_METHODS,
    TEXTS_OF_STAGES,
)
from conformance.scanning.results import (
    ROWS_FOR_ALL,
    counts_all_devices,
    has_rows_by_count,
    tags_of_items,
)
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    ON_ONE_DEVICE,
    UNKNOWN,
    Argument,
    Array,
    Choice,
    Constant,
    Function,
    Items,
    Mapped,
    Method,
    Partial,
    Stage,
    Transformed,
    Value,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def call(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    method: Method,
    arguments: Sequence[Argument],
) -> Value:
    """Return the value of a method's call."""
    owner = method.owner
    if isinstance(owner, Mapped | Stage) and method.name in ("lower", "compile", "trace"):
        mapped = owner if isinstance(owner, Mapped) else owner.mapped
        maps.note_stage(run, scope, node, mapped, method.name)
        return Stage(level=method.name, mapped=mapped)
    if isinstance(owner, Stage) and method.name in TEXTS_OF_STAGES:
        maps.note_stage(run, scope, node, owner.mapped, "text")
    if method.name == GET_ITEM and len(arguments) == 1 and method.node is not None:
        return items.by_call(run, scope, node, Argument(owner, method.node), arguments[0])
    if isinstance(node, cst.Call):
        found = (
            containers.method(method, owner, arguments)
            if isinstance(owner, Items)
            else arrays.method(run, scope, node, method, arguments)
        )
        if found is not None:
            return found
    if method.name == "reshape" and arguments and counts_all_devices(arguments[0].value):
        return with_tags(UNKNOWN, ROWS_FOR_ALL)
    if type(owner) is Value and has_rows_by_count(method.name, maps.bound(method.name, arguments)):
        return with_tags(UNKNOWN, ROWS_FOR_ALL, "host")
    elsewhere = _called_elsewhere(run, scope, node, method, arguments)
    if elsewhere is not None:
        return elsewhere
    containers.grow(run, scope, method, arguments)
    first = arguments[0].value if arguments else UNKNOWN
    if method.name == "reshape" and (
        "local device count" in first.tags
        or (isinstance(first, Items) and "local device count" in tags_of_items(first))
    ):
        return with_tags(UNKNOWN, "rows of this process")
    if method.name in REDUCING_METHODS and not isinstance(owner, Array | Items):
        owner = with_tags(owner, "leaf")
    if method.name in KEEPING_METHODS and ROWS_FOR_ALL in owner.tags:
        return owner
    rows = isinstance(first, Constant) and first.value == 0
    if method.name == "sum" and "product" in owner.tags and rows:
        words = {"detector": frozenset({"product summed over rows"})}
        run.note(scope, "detected", node, words)
    kept = owner.tags & {"host", "typed key", "product", "leaf"}
    if method.name in KEEPING_METHODS | RESHAPING_METHODS | REDUCING_METHODS:
        kept |= owner.tags & {ON_ONE_DEVICE}
    return Value(kept)


def _called_elsewhere(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    method: Method,
    arguments: Sequence[Argument],
) -> Value | None:
    """Return what `executor.submit(function, ...)` and the like call, as if called here."""
    at = CALLING_METHODS.get(method.name)
    if at is None or len(arguments) <= at:
        return None
    function = arguments[at].value
    if not isinstance(function, Mapped | Function | Choice | Partial | Transformed):
        return None
    return run.called(scope, node, function, arguments[at + 1 :])
