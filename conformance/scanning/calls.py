"""Calls in a scanned program: of JAX's functions, of mapped functions, of the program's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import arrays, expressions, maps
from conformance.scanning.names import (
    CONTROL,
    FETCHES,
    ITERATES,
    KEEPS_ITERATING,
    KEEPS_TAGS,
    MAKES_ARRAYS,
    OF_ALL_PROCESSES,
    PRINTS,
    REDUCING_METHODS,
    REDUCTIONS,
    RESHAPES,
    SIGNATURES,
    TRANSFORMATIONS,
    TREE_LEAVES,
    TREE_MAPS,
    canonical,
)
from conformance.scanning.results import counts_all_devices, result_tags, tags_of_items
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    PMAP,
    UNKNOWN,
    Argument,
    Array,
    Class,
    Constant,
    Function,
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
    merged,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter

_UNREPLICATE = "flax.jax_utils.unreplicate"


def call(run: Interpreter, scope: Scope, node: cst.Call) -> Value:
    """The value of a call."""
    function = expressions.evaluate(run, scope, node.func)
    arguments = [passed for one in node.args for passed in _passed(run, scope, one)]
    return called(run, scope, node, function, arguments)


def _passed(run: Interpreter, scope: Scope, node: cst.Arg) -> list[Argument]:
    """An argument; of `**options` and `*args`, where their items are known, each of its own."""
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
    run: Interpreter, scope: Scope, node: cst.BaseExpression, decorator: Value, value: Value
) -> Value:
    """What a decorator makes of a function; UNKNOWN where it is not known to change it."""
    argument = Argument(value, node)
    if isinstance(decorator, Reference | Partial | Function | Transformed):
        return called(run, scope, node, decorator, [argument])
    return UNKNOWN


def called(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    function: Value,
    arguments: Sequence[Argument],
) -> Value:
    """What a call of a value returns."""
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
            return run.call(function, arguments)
        case Class():
            return expressions.instance_of(run, function, arguments)
        case Instance():
            method = expressions.member(function, "__call__")
            return UNKNOWN if method is UNKNOWN else called(run, scope, node, method, arguments)
        case Stage():
            return _stage(run, scope, node, function)
        case Imported() if any(_holds_array(one.value) for one in arguments):
            return called(run, scope, node, run.looked_up(function), arguments)
        case Method():
            return _method(run, scope, node, function, arguments)
    return UNKNOWN


def bound_to(value: Value, owner: Instance) -> Value:
    """A mapped or transformed method, as an attribute of an instance: it takes `self`."""
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
    for one in arguments:
        if function.kind == "jit":
            arrays.used(run, scope, node, one.value, "argument of jit")
    if isinstance(inner, Function):
        found = run.call(inner, arguments, (function.kind,))
        if function.kind == "grad":
            return UNKNOWN
        return found if isinstance(found, Array | Items) else Value(found.tags)
    if isinstance(inner, Mapped):
        return Array(of=inner.kind, structure=UNKNOWN, facts=frozenset(inner.facts["value"]))
    return UNKNOWN


def _stage(run: Interpreter, scope: Scope, node: cst.CSTNode, stage: Stage) -> Value:
    words = {
        "map": frozenset({stage.mapped.kind}),
        "stage": frozenset({"call"}),
        "wrapper": frozenset({stage.mapped.wrapper} if stage.mapped.wrapper else ()),
    }
    run.note(scope, "stage", node, words)
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
        words = {
            "map": frozenset({mapped.kind}),
            "stage": frozenset({method.name}),
            "wrapper": frozenset({mapped.wrapper} if mapped.wrapper else ()),
        }
        run.note(scope, "stage", node, words)
        return Stage(level=method.name, mapped=mapped)
    if isinstance(node, cst.Call):
        found = arrays.method(run, scope, node, method, len(arguments))
        if found is not None:
            return found
    if method.name == "reshape" and any(
        one.value.tags & {"device count", "all devices"}
        or (isinstance(one.value, Items) and counts_all_devices(one.value))
        for one in arguments[:1]
    ):
        return with_tags(UNKNOWN, "rows for all devices")
    if method.name == "append" and isinstance(owner, Items):
        _appended(run, scope, method, arguments)
    first = arguments[0].value if arguments else UNKNOWN
    if method.name == "reshape" and (
        "local device count" in first.tags
        or (isinstance(first, Items) and "local device count" in tags_of_items(first))
    ):
        return with_tags(UNKNOWN, "rows of this process")
    if method.name in REDUCING_METHODS and not isinstance(owner, Array | Items):
        owner = with_tags(owner, "leaf")
    rows = isinstance(first, Constant) and first.value == 0
    if method.name == "sum" and "product" in owner.tags and rows:
        words = {"detector": frozenset({"product summed over rows"})}
        run.note(scope, "detected", node, words)
    return Value(owner.tags & {"host", "typed key", "product", "leaf"})


def _appended(
    run: Interpreter, scope: Scope, method: Method, arguments: Sequence[Argument]
) -> None:
    """`outputs.append(output)`: the list holds outputs from here on."""
    if method.node is None or not isinstance(method.node, cst.Name) or not arguments:
        return
    value = arguments[0].value
    holder = scope.holder(method.node.value)
    if isinstance(value, Array):
        holder.variables[method.node.value] = Items(items=(value,), kind="starred")


def _reference(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    """A call of a function by its qualified name."""
    if name == "functools.partial" and arguments:
        return Partial(function=arguments[0].value, arguments=tuple(arguments[1:]))
    if name in maps.KINDS:
        return maps.make(run, scope, node, name, arguments)
    if name == "getattr" and len(arguments) > 1:
        return _looked_up(run, scope, node, arguments)
    options = maps.bound(name, arguments)
    _note_call(run, scope, node, name, options)
    if name in TRANSFORMATIONS and arguments:
        return _transformation(run, scope, node, name, options, arguments)
    if name in TRANSFORMATIONS:
        return Partial(function=Reference(name=name), arguments=tuple(arguments))
    if name in CONTROL:
        return _control(run, node, scope, name, arguments)
    if name in TREE_MAPS and arguments:
        return _tree_map(run, scope, node, arguments)
    if name in MAKES_ARRAYS:
        return Array(of=MAKES_ARRAYS[name], structure=UNKNOWN)
    return _used(run, scope, node, name, options, arguments)


def _looked_up(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, arguments: Sequence[Argument]
) -> Value:
    """`getattr(module, "name")`; with a default a name that is gone does no harm."""
    owner, name = arguments[0].value, arguments[1].value
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
        "under": frozenset({*run.under, *run.within}),
        **facts,
    }
    captures: dict[str, cst.CSTNode] = {f"arg.{key}": one.node for key, one in options.items()}
    if isinstance(node, cst.Call):
        captures["function"] = node.func
    run.note(scope, "call", node, words, captures)
    maps_around = [word for word in run.under if word in ("in pmap", "in shard_map")]
    if maps_around:
        kind = frozenset({maps_around[-1].removeprefix("in ")})
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
    for at in places:
        if at >= len(arguments):
            continue
        value = arguments[at].value
        some = value.items if isinstance(value, Items) else (value,)
        for one in some:
            while isinstance(one, Partial):
                one = one.function
            if isinstance(one, Mapped):
                maps.transformed(run, scope, node, kind, one)
            elif isinstance(one, Function | Transformed):
                maps.body(run, one, (kind,))
    return UNKNOWN


def _tree_map(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, arguments: Sequence[Argument]
) -> Value:
    """`jax.tree.map(function, tree, ...)`: the function is called with the tree's leaves."""
    function, *trees = arguments
    leaves = []
    for one in trees:
        if one.keyword:
            continue
        value = _leaf_of(one.value)
        leaves.append(Argument(value, one.node))
    before = run.within
    run.within = (*before, "tree map")
    try:
        found = called(run, scope, node, function.value, leaves)
    finally:
        run.within = before
    if isinstance(found, Array):
        tree = next((one.value for one in trees if isinstance(one.value, Array)), None)
        if tree is not None:
            return Array(of=found.of, structure=tree.structure, facts=found.facts, row=found.row)
        return found
    return Value(found.tags & {"rows of this process", "rows for all devices"})


def _leaf_of(value: Value) -> Value:
    if isinstance(value, Array):
        return Array(of=value.of, leaf=True, facts=value.facts, row=value.row)
    if isinstance(value, Items):
        found: Value | None = None
        for one in value.items:
            if isinstance(one, Array | Items):
                found = merged(found, _leaf_of(one))
        return found or UNKNOWN
    return UNKNOWN


def _used(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    options: dict[str, Argument],
    arguments: Sequence[Argument],
) -> Value:
    """A call of a function that takes outputs, and what it returns."""
    first = arguments[0] if arguments else None
    capture: dict[str, cst.CSTNode] = {"value": first.node} if first is not None else {}
    values = [one.value for one in arguments]
    outputs = [one for one in values if _holds_array(one)]
    if outputs:
        use = _use(name)
        if use:
            arrays.used(run, scope, node, outputs[0], use, capture)
        if name in ITERATES:
            for one in arguments:
                if isinstance(one.value, Array):
                    each = arrays.iterated(run, scope, one.node, one.value, "iterate")
                    if name in KEEPS_ITERATING:
                        return Items(items=(Items(items=(UNKNOWN, each)),), kind="starred")
            return UNKNOWN
        if name == "reversed" and isinstance(outputs[0], Array):
            return arrays.iterated(run, scope, node, outputs[0], "reversed")
        kept = _kept(name, outputs[0])
        if kept is not None:
            return kept
    if name == "enumerate" and values:
        each = expressions.iterated(run, scope, arguments[0].node, values[0], "iterate")
        count = with_tags(UNKNOWN, "integer")
        return Items(items=(Items(items=(count, each)),), kind="starred")
    if name == "zip" and values:
        rounds = [
            expressions.iterated(run, scope, one.node, one.value, "iterate") for one in arguments
        ]
        return Items(items=(Items(items=tuple(rounds)),), kind="starred")
    return Value(result_tags(name, options, values))


def _holds_array(value: Value) -> bool:
    if isinstance(value, Items):
        return any(_holds_array(one) for one in value.items)
    return isinstance(value, Array)


def _use(name: str) -> str:
    """What a function does with an output, in a word; empty where that is not known."""
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
    """What becomes of an output; None where nothing is known of it any more."""
    if name in TREE_LEAVES:
        return Items(items=(_leaf_of(value),), kind="starred")
    if name in KEEPS_TAGS or name in ("jax.numpy.asarray", "next"):
        return value
    if name == "flax.training.train_state.TrainState.replace":
        return value
    if isinstance(value, Array) and (name == _UNREPLICATE):
        return Array(of=value.of, structure=value.structure, facts=value.facts, row=True)
    if isinstance(value, Array) and name in ("jax.numpy.split", "jax.numpy.array_split"):
        return Items(items=(Array(of=value.of, facts=value.facts, leaf=True),), kind="starred")
    if isinstance(value, Array) and name in RESHAPES:
        return Array(of=value.of, facts=value.facts, leaf=True, row=value.row)
    return None
