"""What functions outside of a scanned program do with the outputs that they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import arrays, items
from conformance.scanning.imports import last_name
from conformance.scanning.names import (
    FETCHES,
    ITERATES,
    KEEPS_ITERATING,
    KEEPS_TAGS,
    OF_ONE_ARGUMENT,
    PRINTS,
    REDUCTIONS,
    RESHAPES,
    SAME_ITEMS,
    TAKES_ROWS,
    TREE_FLATTENS,
    TREE_LEAVES,
)
from conformance.scanning.results import ROWS_FOR_ALL, result_tags
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    ON_ONE_DEVICE,
    RESHAPED,
    UNKNOWN,
    Argument,
    Array,
    Items,
    Value,
    merged_all,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


# What is so of a tree if it is so of its leaves.
_OF_LEAVES = frozenset(
    {
        *("rows of this process", ROWS_FOR_ALL),
        *(ON_ONE_DEVICE, "placed otherwise", "on an explicit mesh"),
    }
)
_UNREPLICATE = "flax.jax_utils.unreplicate"


def tree_map(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    arguments: Sequence[Argument],
    *,
    path: bool = False,
) -> Value:
    """Return the value of `jax.tree.map(function, tree, ...)`, calling the function with the
    leaves.
    """
    function, *trees = arguments
    leaves = [Argument(UNKNOWN, arguments[0].node)] if path else []
    for one in trees:
        if one.keyword:
            continue
        value = _leaf_of(one.value)
        leaves.append(Argument(value, one.node))
    before = run.within
    run.within = (*before, "tree map")
    try:
        found = run.called(scope, node, function.value, leaves)
    finally:
        run.within = before
    if isinstance(found, Array):
        tree = next((one.value for one in trees if isinstance(one.value, Array)), None)
        if tree is not None:
            return Array(of=found.of, structure=tree.structure, facts=found.facts, row=found.row)
        return replace(found, leaf=False)  # a display of arrays
    return Value(found.tags & _OF_LEAVES)


def mapped(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    """Return the value of `map`, `filter` or `functools.reduce`, calling the function once."""
    function, *iterables = arguments
    each = [
        Argument(items.iterated(run, scope, one.node, one.value, "iterate"), one.node)
        for one in (iterables[:1] if name == "functools.reduce" else iterables)
    ]
    before = run.within
    run.within = (*before, "loop") if "loop" not in before else before
    try:
        passed = each * 2 if name == "functools.reduce" else each
        found = run.called(scope, node, function.value, passed)
    finally:
        run.within = before
    if name == "functools.reduce":
        return found
    kept = each[0].value if name == "filter" else found
    return Items(items=(kept,), kind="starred") if kept != UNKNOWN else UNKNOWN


def _leaf_of(value: Value) -> Value:
    if isinstance(value, Array):
        return Array(of=value.of, leaf=True, facts=value.facts, row=value.row)
    if isinstance(value, Items):
        return merged_all(_leaf_of(one) for one in value.items if isinstance(one, Array | Items))
    return UNKNOWN


def used(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    options: dict[str, Argument],
    arguments: Sequence[Argument],
) -> Value:
    """Note a call of a function that takes outputs, and return its value."""
    first = arguments[0] if arguments else None
    capture: dict[str, cst.CSTNode] = {"value": first.node} if first is not None else {}
    values = [one.value for one in arguments]
    outputs = [one for one in values if holds_array(one)]
    if first is not None and isinstance(first.value, Array) and name in TAKES_ROWS:
        return arrays.taken(run, scope, node, first.value, name, arguments)
    if outputs:
        use = _use(name)
        if use:
            extra = _target(options) if use == "device_put" else frozenset[str]()
            arrays.used(run, scope, node, outputs[0], use, capture, extra)
        summed = name == "sum" and isinstance(outputs[0], Items)
        if (
            name in ITERATES
            and not summed
            and not (name in OF_ONE_ARGUMENT and _several(arguments))
        ):
            for one in arguments:
                if isinstance(one.value, Array):
                    each = arrays.iterated(run, scope, one.node, one.value, "iterate")
                    if name in KEEPS_ITERATING:
                        return Items(items=(Items(items=(UNKNOWN, each)),), kind="starred")
            return outputs[0] if name in SAME_ITEMS and isinstance(outputs[0], Items) else UNKNOWN
        if name == "reversed" and isinstance(outputs[0], Array):
            return arrays.iterated(run, scope, node, outputs[0], "reversed")
        if name == "sum" and isinstance(outputs[0], Items):
            return next((one for one in outputs[0].items if isinstance(one, Array)), UNKNOWN)
        kept = _kept(name, outputs[0])
        if kept is not None:
            return kept
    if name == "enumerate" and values:
        each = items.iterated(run, scope, arguments[0].node, values[0], "iterate")
        count = with_tags(UNKNOWN, "integer")
        return Items(items=(Items(items=(count, each)),), kind="starred")
    if name == "zip" and values:
        rounds = [items.iterated(run, scope, one.node, one.value, "iterate") for one in arguments]
        return Items(items=(Items(items=tuple(rounds)),), kind="starred")
    return Value(result_tags(name, options, values))


def _target(options: dict[str, Argument]) -> frozenset[str]:
    """Return a word for where `device_put` puts an array: on one device, as far as that is known
    or its name says so.
    """
    device = options.get("device")
    if device is None:
        return frozenset()
    named = last_name(device.node).lower().endswith("device")
    return frozenset({"to one device"} if named or "device" in device.value.tags else ())


def _several(arguments: Sequence[Argument]) -> bool:
    return sum(not one.keyword for one in arguments) > 1


def holds_array(value: Value) -> bool:
    """Return whether a value is an array, or a container with one anywhere in it."""
    if isinstance(value, Items):
        return any(holds_array(one) for one in value.items)
    return isinstance(value, Array)


def _use(name: str) -> str:
    """Return a word for what a function does with an output; empty if unknown."""
    if name == _UNREPLICATE:
        return "unreplicate"
    if name in FETCHES:
        return "fetch"
    if name in PRINTS:
        return "print"
    if name in REDUCTIONS:
        return "reduce"
    if name in RESHAPES:
        return "reshape"
    return {
        "jax.numpy.unstack": "unstack",
        "jax.device_put": "device_put",
        "jax.numpy.asarray": "asarray",
        "jax.numpy.array": "asarray",
        "jax.numpy.concatenate": "concatenate",
        "jax.numpy.stack": "concatenate",
        "jax.experimental.multihost_utils.process_allgather": "process_allgather",
    }.get(name, "")


def _kept(name: str, value: Value) -> Value | None:
    """Return what an output becomes; None if nothing is known of it any more."""
    if name in TREE_LEAVES:
        return Items(items=(_leaf_of(value),), kind="starred")
    if name in TREE_FLATTENS:
        return Items(items=(Items(items=(_leaf_of(value),), kind="starred"), UNKNOWN))
    if name in KEEPS_TAGS or name in ("jax.numpy.asarray", "next", "dataclasses.replace"):
        return value
    if name == "jax.numpy.concatenate" and isinstance(value, Items):
        return next((_leaf_of(one) for one in value.items if isinstance(one, Array)), None)
    if name == "flax.training.train_state.TrainState.replace":
        return value
    if isinstance(value, Array) and (name == _UNREPLICATE):
        return Array(of=value.of, structure=value.structure, facts=value.facts, row=True)
    if isinstance(value, Array) and name in ("jax.numpy.split", "jax.numpy.array_split"):
        return Items(items=(Array(of=value.of, facts=value.facts, leaf=True),), kind="starred")
    if isinstance(value, Array) and name in RESHAPES:
        return Array(of=value.of, facts=value.facts | {RESHAPED}, leaf=True, row=value.row)
    return None
