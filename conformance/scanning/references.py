"""Calls of functions that a scanned program imports: of Python, of JAX and of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import classes, containers, items, maps, uses
from conformance.scanning.names import (
    CALLED_BY_CONTROL,
    CALLS_THE_FIRST,
    CONTROL,
    FIELDS,
    ITSELF,
    MAKES_ARRAYS,
    MAKES_DICTIONARIES,
    OF_ALL_PROCESSES,
    RETURN_THE_FIRST,
    SIGNATURES,
    TRANSFORMATIONS,
    TREE_MAPS,
    WITH_PATHS,
    canonical,
)
from conformance.scanning.results import maps_around, tags_of_items
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    PMAP,
    UNKNOWN,
    Argument,
    Array,
    Constant,
    Function,
    Getter,
    Instance,
    Items,
    Mapped,
    Partial,
    Reference,
    Transformed,
    Value,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def call(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    """Return the value of calling a function by its qualified name."""
    found = _of_python(run, scope, node, name, arguments)
    if found is None:
        found = _container(run, scope, node, name, arguments)
    if found is not None:
        return found
    if name in maps.KINDS:
        _note_call(run, scope, node, name, maps.bound(name, arguments))
        return maps.make(run, scope, node, name, arguments)
    options = maps.bound(name, arguments)
    _note_call(run, scope, node, name, options)
    if name in TRANSFORMATIONS and arguments:
        return _transformation(run, scope, node, name, options, arguments)
    if name in TRANSFORMATIONS:
        return Partial(function=Reference(name=name), arguments=tuple(arguments))
    if name in CONTROL:
        return _control(run, node, scope, name, arguments)
    if name in TREE_MAPS and arguments:
        return uses.tree_map(run, scope, node, arguments)
    if name in WITH_PATHS and arguments:
        return uses.tree_map(run, scope, node, arguments, path=True)
    if name in ("map", "filter", "functools.reduce") and len(arguments) > 1:
        return uses.mapped(run, scope, node, name, arguments)
    if name in MAKES_ARRAYS:
        return _made(name, arguments)
    return uses.used(run, scope, node, name, options, arguments)


def _as_is(name: str, value: Value) -> Value:
    if name == "staticmethod" and isinstance(value, Function | Mapped | Transformed | Partial):
        return replace(value, tags=value.tags | {name})
    return value


def _of_python(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value | None:
    """Return the value of calling a function that works on names or functions; None if it is
    another.
    """
    if name == "operator.itemgetter" and len(arguments) == 1:
        return Getter(index=arguments[0].value, node=node)
    if name == "operator.getitem" and len(arguments) == 2:
        return items.by_call(run, scope, node, arguments[0], arguments[1])
    if name in FIELDS:
        return _field(run, scope, node, arguments)
    if name == "setattr" and len(arguments) == 3:
        return classes.set_by_name(arguments)
    if name == "functools.wraps":
        return Reference(name=ITSELF)
    if name == "functools.lru_cache" and not _is_callable(arguments):
        return Reference(name=ITSELF)
    if name == "super" and not arguments:
        return classes.parent(scope)
    if name in ("functools.partial", "jax.tree_util.Partial") and arguments:
        return Partial(function=arguments[0].value, arguments=tuple(arguments[1:]))
    if name in RETURN_THE_FIRST and arguments:
        return _as_is(name, arguments[0].value)
    if name in CALLS_THE_FIRST and arguments:
        return run.called(scope, node, arguments[0].value, arguments[1:])
    if name == "getattr" and len(arguments) > 1:
        return _looked_up(run, scope, node, arguments)
    return None


def _container(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value | None:
    """Return the dictionary or record that a function makes; None if it makes none."""
    if name in MAKES_DICTIONARIES:
        return containers.dictionary(arguments)
    if name == "collections.namedtuple":
        return Partial(function=Reference(name=containers.RECORD), arguments=tuple(arguments))
    if name == containers.RECORD:
        return containers.record(arguments)
    if name == "collections.defaultdict" and arguments:
        made = run.called(scope, node, arguments[0].value, ())
        return Items(items=(made,), kind="starred") if isinstance(made, Mapped) else UNKNOWN
    return None


def _made(name: str, arguments: Sequence[Argument]) -> Array:
    """Return an array, or a tree of arrays, that is no output but has rows as outputs have."""
    origin = MAKES_ARRAYS[name]
    tree = arguments[0].value if origin == "replicate" and arguments else UNKNOWN
    if name == "jax.device_put_sharded":  # a list of trees
        tree = tree.items[0] if isinstance(tree, Items) and tree.items else UNKNOWN
    return Array(of=origin, structure=tree if isinstance(tree, Items | Instance) else UNKNOWN)


def _is_callable(arguments: Sequence[Argument]) -> bool:
    return bool(arguments) and isinstance(arguments[0].value, Function | Mapped | Transformed)


def _field(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, arguments: Sequence[Argument]
) -> Value:
    """Return the default value of a field of a dataclass."""
    for one in arguments:
        if one.keyword == "default_factory":
            made = run.called(scope, node, one.value, ())
            return _as_is("staticmethod", made)
        if one.keyword == "default":
            return one.value
    return UNKNOWN


def _looked_up(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, arguments: Sequence[Argument]
) -> Value:
    """Return the value of `getattr(module, "name")`; with a default, a missing name is no event."""
    owner, name = arguments[0].value, arguments[1].value
    if isinstance(owner, Instance) and isinstance(name, Constant):
        return classes.member(owner, str(name.value))
    if not (isinstance(owner, Reference) and isinstance(name, Constant)):
        return UNKNOWN
    full = f"{owner.name}.{name.value}"
    if len(arguments) == 2:
        words = frozenset({full, canonical(full)})
        run.note(scope, "name", node, {"name": words, "how": frozenset({"attribute"})})
    return Reference(name=canonical(full))


def _note_call(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    options: dict[str, Argument],
) -> None:
    if "one process" in run.within and name in OF_ALL_PROCESSES:
        maps.one_process(run, scope, node, PMAP)
    if name not in run.wanted:
        return
    facts = maps.passed_facts(options, SIGNATURES.get(name, ()))
    tags: set[str] = set()
    for one in options.values():
        value = one.value
        tags |= value.tags
        if isinstance(value, Array):
            tags.add(f"row of {value.of}" if value.row else f"output of {value.of}")
        if isinstance(value, Constant):
            tags.add("literal")
        if isinstance(value, Items):
            tags |= tags_of_items(value)
    words = {
        "name": frozenset({name}),
        "argument": frozenset(tags),
        "under": frozenset({*run.under, *run.within, *scope.source.style}),
        **facts,
    }
    captures: dict[str, cst.CSTNode] = {f"arg.{key}": one.node for key, one in options.items()}
    if isinstance(node, cst.Call):
        captures["function"] = node.func
    run.note(scope, "call", node, words, captures)
    if around := maps_around(run.under):
        kind = frozenset({around[-1]})
        inside = {**words, "map": kind}
        inside.pop("value")
        run.note(scope, "body", node, inside, captures)


def _transformation(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    options: dict[str, Argument],
    arguments: Sequence[Argument],
) -> Value:
    first = options.get("fun") or arguments[0]
    if first.keyword and first.keyword not in ("fun", "f"):
        return Partial(function=Reference(name=name), arguments=tuple(arguments))
    return maps.transformed(run, scope, node, TRANSFORMATIONS[name], first.value, options=options)


def _control(
    run: Interpreter,
    node: cst.BaseExpression,
    scope: Scope,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    kind, places = CONTROL[name]
    passed = [one for at, one in enumerate(arguments) if at in places and not one.keyword]
    passed += [one for one in arguments if one.keyword in CALLED_BY_CONTROL]
    for value in (one.value for one in passed):
        some = value.items if isinstance(value, Items) else (value,)
        for one in some:
            while isinstance(one, Partial):
                one = one.function
            if isinstance(one, Mapped):
                maps.transformed(run, scope, node, kind, one)
            elif isinstance(one, Function | Transformed):
                maps.body(run, one, (kind,))
    return UNKNOWN
