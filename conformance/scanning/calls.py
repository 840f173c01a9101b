"""Calls in a scanned program: of JAX's functions, of mapped functions, of the program's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import (
    arrays,
    containers,
    donations,
    expressions,
    items,
    maps,
    members,
    uses,
)
from conformance.scanning.names import (
    CALLED_BY_CONTROL,
    CALLING_METHODS,
    CALLS_THE_FIRST,
    CONTROL,
    FIELDS,
    GET_ITEM,
    ITSELF,
    KEEPING_METHODS,
    MAKES_ARRAYS,
    MAKES_DICTIONARIES,
    OF_ALL_PROCESSES,
    REDUCING_METHODS,
    RESHAPING_METHODS,
    RETURN_THE_FIRST,
    SIGNATURES,
    TEXTS_OF_STAGES,
    TRANSFORMATIONS,
    TREE_MAPS,
    WITH_PATHS,
    canonical,
)
from conformance.scanning.results import (
    ROWS_FOR_ALL,
    counts_all_devices,
    has_rows_by_count,
    maps_around,
    tags_of_items,
)
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    GLOBAL,
    ON_ONE_DEVICE,
    PMAP,
    REPLICATES,
    SPLITS,
    UNKNOWN,
    Argument,
    Array,
    Choice,
    Class,
    Constant,
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
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def call(run: Interpreter, scope: Scope, node: cst.Call) -> Value:
    """Return the value of a call."""
    before, run.passed_to_map = run.passed_to_map, False
    function = expressions.evaluate(run, scope, node.func)
    run.passed_to_map = isinstance(function, Mapped)
    arguments = [passed for one in node.args for passed in _passed(run, scope, one)]
    run.passed_to_map = before
    return called(run, scope, node, function, arguments)


def _passed(run: Interpreter, scope: Scope, node: cst.Arg) -> list[Argument]:
    """Return the arguments of a call, with `**options` and `*args` expanded if their items are
    known.
    """
    value = expressions.evaluate(run, scope, node.value)
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
        return called(run, scope, node, decorator, [argument])
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
            return _reference(run, scope, node, function.name, arguments)
        case Partial():
            kept = [one for one in function.arguments if not one.keyword]
            named = [one for one in function.arguments if one.keyword]
            return called(run, scope, node, function.function, [*kept, *arguments, *named])
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
            return merged_all(called(run, scope, node, one, arguments) for one in some)
        case Class():
            return members.instance_of(run, function, arguments)
        case Instance():
            method = members.member(function, "__call__")
            return UNKNOWN if method is UNKNOWN else called(run, scope, node, method, arguments)
        case Getter() if arguments and isinstance(arguments[0].value, Array):
            each = cst.Subscript(function.node, [cst.SubscriptElement(cst.Index(function.node))])
            return arrays.subscript(run, scope, each, arguments[0].value, [function.index], node)
        case Stage():
            return _stage(run, scope, node, function)
        case Imported() if any(uses.holds_array(one.value) for one in arguments):
            return called(run, scope, node, run.looked_up(function), arguments)
        case Method():
            return _method(run, scope, node, function, arguments)
    return UNKNOWN


def bound_to(value: Value, owner: Instance) -> Value:
    """Return a mapped or transformed method as an attribute of an instance, which takes `self`."""
    first = Argument(owner, cst.Name("self"))
    return Partial(function=value, arguments=(first,))


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


def _note_stage(
    run: Interpreter, scope: Scope, node: cst.CSTNode, mapped: Mapped, word: str
) -> None:
    words = {
        "map": frozenset({mapped.kind}),
        "stage": frozenset({word}),
        "wrapper": frozenset({mapped.wrapper} if mapped.wrapper else ()),
    }
    run.note(scope, "stage", node, words)


def _stage(run: Interpreter, scope: Scope, node: cst.CSTNode, stage: Stage) -> Value:
    _note_stage(run, scope, node, stage.mapped, "call")
    return Array(of=f"{stage.mapped.kind} stage", structure=stage.mapped.returns)


def _method(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    method: Method,
    arguments: Sequence[Argument],
) -> Value:
    owner = method.owner
    if isinstance(owner, Mapped | Stage) and method.name in ("lower", "compile", "trace"):
        mapped = owner if isinstance(owner, Mapped) else owner.mapped
        _note_stage(run, scope, node, mapped, method.name)
        return Stage(level=method.name, mapped=mapped)
    if isinstance(owner, Stage) and method.name in TEXTS_OF_STAGES:
        _note_stage(run, scope, node, owner.mapped, "text")
    if method.name == GET_ITEM and len(arguments) == 1 and method.node is not None:
        return _item(run, scope, node, Argument(owner, method.node), arguments[0])
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


def _item(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, owner: Argument, index: Argument
) -> Value:
    """Return the value of `owner[index]`, written as a call."""
    if isinstance(owner.value, Items):
        return items.item(owner.value, index.value)
    if not isinstance(owner.value, Array):
        return UNKNOWN
    written = cst.Subscript(owner.node, [cst.SubscriptElement(cst.Index(index.node))])
    return arrays.subscript(run, scope, written, owner.value, [index.value], node)


def _as_is(name: str, value: Value) -> Value:
    if name == "staticmethod" and isinstance(value, Function | Mapped | Transformed | Partial):
        return replace(value, tags=value.tags | {name})
    return value


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
    return called(run, scope, node, function, arguments[at + 1 :])


def _reference(
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
        return _item(run, scope, node, arguments[0], arguments[1])
    if name in FIELDS:
        return _field(run, scope, node, arguments)
    if name == "setattr" and len(arguments) == 3:
        return members.set_by_name(arguments)
    if name == "functools.wraps":
        return Reference(name=ITSELF)
    if name == "functools.lru_cache" and not _is_callable(arguments):
        return Reference(name=ITSELF)
    if name == "super" and not arguments:
        return members.parent(scope)
    if name in ("functools.partial", "jax.tree_util.Partial") and arguments:
        return Partial(function=arguments[0].value, arguments=tuple(arguments[1:]))
    if name in RETURN_THE_FIRST and arguments:
        return _as_is(name, arguments[0].value)
    if name in CALLS_THE_FIRST and arguments:
        return called(run, scope, node, arguments[0].value, arguments[1:])
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
        made = called(run, scope, node, arguments[0].value, ())
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
            made = called(run, scope, node, one.value, ())
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
        return members.member(owner, str(name.value))
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
    if "one process" in run.within and name in OF_ALL_PROCESSES:
        maps.one_process(run, scope, node, PMAP)


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
