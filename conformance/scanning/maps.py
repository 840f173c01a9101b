"""Creation and calls of mapped functions in a scanned program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from conformance.scanning import donations
from conformance.scanning.imports import last_name
from conformance.scanning.names import SIGNATURES
from conformance.scanning.results import ROWS_FOR_ALL, result_tags, tags_of_items
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    ON_ONE_DEVICE,
    ONE_ROW,
    OTHER_AXIS,
    PART_OF_DEVICES,
    PMAP,
    REPLICATES,
    SHARD_MAP,
    SPLITS,
    UNKNOWN,
    WHOLE,
    Argument,
    Array,
    Choice,
    Constant,
    Function,
    Instance,
    Items,
    Mapped,
    Method,
    Partial,
    Reference,
    Transformed,
    Value,
    merged_all,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


KINDS = {
    "jax.pmap": PMAP,
    "jax.shard_map": SHARD_MAP,
    "equinox.filter_pmap": PMAP,
    "flax.nnx.pmap": PMAP,
}
# Where None is no default, or was one until the parameter was removed: to give it is an error now.
_NONE_MEANS = ("in_axes", "out_axes", "global_arg_shapes", "abstracted_axes")
_ON, _EMPTY = "on ", cst.Module([])
_OVER_SOME = "of a map over some devices"
_ALL = frozenset({"all devices", "local devices"})
_BODY = {PMAP: "in pmap", SHARD_MAP: "in shard_map"}


def bound(name: str, arguments: Sequence[Argument]) -> dict[str, Argument]:
    """Return arguments by parameter name, as far as the function's are known."""
    names = SIGNATURES.get(name, ())
    found: dict[str, Argument] = {}
    position = 0
    for one in arguments:
        if one.star:
            found["*"] = one
        elif one.keyword:
            found[one.keyword] = one
        else:
            found[names[position] if position < len(names) else f"#{position}"] = one
            position += 1
    return found


def passed_facts(
    options: Mapping[str, Argument], names: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return which parameters a call passes or omits, and facts about their values."""
    options = {name: one for name, one in options.items() if not _left_out(name, one)}
    values: set[str] = set()
    for name, one in options.items():
        values |= {f"{name}={fact}" for fact in value_facts(one.value)}
    keywords = {f"{one.keyword}=" for one in options.values() if one.keyword}
    return {
        "passes": frozenset({*options, *keywords}),
        # With stars nobody knows what is left out.
        "omits": frozenset() if "*" in options else frozenset({*names} - {*options}),
        "value": frozenset(values),
    }


def _left_out(name: str, argument: Argument) -> bool:
    """Return whether an option may be omitted: None, or a parameter that is passed on."""
    if name in _NONE_MEANS:
        return False
    if isinstance(argument.value, Constant) and argument.value.value is None:
        return True
    return argument.value == UNKNOWN and last_name(argument.node).strip("_") == name


def value_facts(value: Value) -> set[str]:
    """Return what is known of a value, in the words of rules."""
    found = set(value.tags)
    match value:
        case Method() | Function(owner=Instance()):
            found.add("method")
        case Function(node=cst.Lambda()):
            found.add("lambda")
        case Partial():
            found.add("partial")
    if isinstance(value, Items):
        for one in value.items:
            found |= {f"contains {fact}" for fact in value_facts(one)}
        found.add(value.kind)
    if not isinstance(value, Constant):
        return found
    literal: Any = value.value
    found.add(repr(literal) if not isinstance(literal, str) else literal)
    if isinstance(literal, bool):
        found.add("not a text")
    elif isinstance(literal, int | float):
        found |= {"number", "not a text"}
        if literal < 0:
            found.add("negative")
        if literal == 0:
            found.add("zero")
    elif isinstance(literal, bytes):
        found.add("not a text")
    elif isinstance(literal, str):
        if not literal:
            found.add("empty")
        if not literal.isascii():
            found.add("not ASCII")
        if literal.endswith(":0"):
            found.add("port 0")
    return found


def make(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    name: str,
    arguments: Sequence[Argument],
) -> Value:
    """Return the mapped function of a call of jax.pmap or jax.shard_map, or one that waits
    for it.
    """
    options = bound(name, arguments)
    kind = KINDS[name]
    function = options.get("fun") or options.get("f")
    if function is None and "*" not in options:
        return Partial(function=Reference(name=name), arguments=tuple(arguments))
    facts = passed_facts(options, SIGNATURES[name])
    under = frozenset(run.under)
    mesh = options.get("mesh")
    attributes = {
        "map": frozenset({kind}),
        "under": under,
        "mesh": mesh.value.tags if mesh is not None else frozenset(),
        **facts,
    }
    captures: dict[str, cst.CSTNode] = {f"arg.{key}": one.node for key, one in options.items()}
    run.note(scope, "map", node, attributes, captures)
    inner = function.value if function is not None else UNKNOWN
    if isinstance(inner, Transformed) and isinstance(inner.function, Mapped):
        inner = inner.function
    if isinstance(inner, Mapped) and function is not None:  # jax.pmap(jax.pmap(f))
        _noted_inside(run, scope, function.node, inner, _BODY[kind])
    returns = body(run, inner, (_BODY[kind],))
    return Mapped(kind=kind, function=inner, options=options, facts=facts, returns=returns)


def body(run: Interpreter, function: Value, under: tuple[str, ...]) -> Value:
    """Return the value of a traced function, called with unknown arguments."""
    function = run.looked_up(function)
    while isinstance(function, Transformed):
        under = (*under, function.kind)
        function = function.function
    if isinstance(function, Choice):
        return merged_all(body(run, one, under) for one in function.functions)
    if isinstance(function, Partial):
        return body(run, function.function, under)
    if isinstance(function, Function):
        return run.call(function, (), under)
    if isinstance(function, Reference):
        return Value(result_tags(function.name, {}, ()) & {"leaf", "collective alone"})
    return UNKNOWN


def _noted_inside(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, mapped: Mapped, *words: str
) -> None:
    attributes = {
        "map": frozenset({mapped.kind}),
        "under": frozenset({*run.under, *words}),
        "passes": frozenset[str](),
        "value": mapped.facts["value"],
        "argument": frozenset[str](),
        "wrapper": frozenset({mapped.wrapper} if mapped.wrapper else ()),
    }
    run.note(scope, "called", node, attributes)


def transformed(
    run: Interpreter, scope: Scope, node: cst.BaseExpression, kind: str, value: Value, **kept: Any
) -> Value:
    """Return a function under a transformation; a mapped function under jit stays one."""
    if isinstance(value, Choice):
        some = value.functions
        return merged_all(transformed(run, scope, node, kind, one, **kept) for one in some)
    while isinstance(value, Partial):
        value = value.function
    words = (kind, *(["spmd_axis_name"] if "spmd_axis_name" in kept.get("options", {}) else []))
    if isinstance(value, Mapped):
        if not (kind == "jit" and value.kind == SHARD_MAP):
            _noted_inside(run, scope, node, value, *words)
        if kind == "jit":
            return Mapped(
                kind=value.kind,
                function=value.function,
                options={**value.options, **kept.get("options", {})},
                facts=value.facts,
                returns=value.returns,
                wrapper="jit",
            )
        return Transformed(kind=kind, function=value)
    if isinstance(value, Function):
        body(run, value, words)
    shardings = kept.get("options", {}).get("out_shardings")
    return Transformed(
        kind=kind,
        function=value,
        tags=_of_results(shardings.value) if shardings is not None else frozenset(),
    )


def _of_results(shardings: Value) -> frozenset[str]:
    """Return a word for how `out_shardings` places the results of a jitted function."""
    if "not by rows" in shardings.tags:
        return frozenset({REPLICATES})
    return frozenset({SPLITS} if "sharding" in shardings.tags else ())


def call(
    run: Interpreter,
    scope: Scope,
    node: cst.BaseExpression,
    mapped: Mapped,
    arguments: Sequence[Argument],
) -> Value:
    """Return the output of calling a mapped function."""
    tags: set[str] = set()
    outputs: set[int] = set()
    for at, one in enumerate(arguments):
        words = _argument_words(mapped, one, at)
        if not scope.source.of_several_processes:  # whose devices are all its own
            words.discard(ROWS_FOR_ALL)
        tags |= words
        outputs |= {at} if "output of pmap" in words else set()
    # An argument that was something else when this call was first evaluated.
    if outputs - run.first_outputs.setdefault(id(node), frozenset(outputs)):
        tags.add("fed back")
    keywords = {one.keyword for one in arguments if one.keyword}
    at_once = isinstance(node, cst.Call) and isinstance(node.func, cst.Call)
    attributes = {
        "map": frozenset({mapped.kind}),
        "under": frozenset({*run.under, *run.within, *(["called at once"] if at_once else [])}),
        "passes": mapped.facts["passes"] | ({"keyword"} if keywords else frozenset()),
        "value": mapped.facts["value"],
        "argument": frozenset(tags),
        "wrapper": frozenset({mapped.wrapper} if mapped.wrapper else ()),
    }
    run.note(scope, "called", node, attributes)
    if "one process" in run.within:
        one_process(run, scope, node, mapped.kind)
    donations.donate(run, scope, mapped, arguments)
    structure = mapped.returns
    facts = {fact for fact in mapped.facts["value"] if fact.startswith(("out_axes", "out_specs"))}
    if devices := _devices(mapped):
        facts.add(devices)
    if _is_over_some(mapped):
        facts.add(_OVER_SOME)
    if "out_axes" in mapped.options and not _all_zero(mapped.options["out_axes"].value):
        facts.add("out_axes")
    option = mapped.options.get("out_axes")
    axes = option.value if option is not None and mapped.kind == PMAP else UNKNOWN
    facts |= axis_words(axes)
    leaf = "leaf" in structure.tags and not isinstance(structure, Items)
    return Array(
        of=mapped.kind,
        leaf=leaf,
        structure=structure,
        facts=frozenset(facts),
        axes=axes,
        maker=id(mapped),
    )


def _devices(mapped: Mapped) -> str:
    """Return a word for the devices that a map names; empty if it is over all devices."""
    option = mapped.options.get("devices")
    if option is None or (option.value.tags & _ALL and not _is_over_some(mapped)):
        return ""
    return _ON + _EMPTY.code_for_node(option.node)


def _is_over_some(mapped: Mapped) -> bool:
    """Return whether a map is known to be over a part of the devices."""
    option = mapped.options.get("devices")
    return option is not None and PART_OF_DEVICES in option.value.tags


def axis_words(axes: Value) -> set[str]:
    """Return words for an output that has no row per device along its first dimension."""
    if not isinstance(axes, Constant):
        return set()
    if axes.value is None:
        return {WHOLE}
    return {OTHER_AXIS} if type(axes.value) is int and axes.value > 0 else set()


def _all_zero(value: Value) -> bool:
    if isinstance(value, Items):
        return all(map(_all_zero, value.items))
    return isinstance(value, Constant) and value.value == 0


def _in_axis(mapped: Mapped, argument: Argument, at: int) -> Value:
    """Return the axis along which pmap maps an argument; UNKNOWN for a tree of axes."""
    option = mapped.options.get("in_axes")
    if option is None or argument.keyword:
        return Constant(value=0) if "*" not in mapped.options else UNKNOWN
    if isinstance(option.value, Items) and at < len(option.value.items):
        return option.value.items[at]
    return option.value


def _placement(mapped: Mapped, argument: Argument, at: int) -> set[str]:
    """Return words for an argument that is committed to another sharding than pmap's for it."""
    axis = _in_axis(mapped, argument, at)
    value = argument.value
    if mapped.kind != PMAP or not isinstance(axis, Constant):
        return set()
    if axis.value is None and ON_ONE_DEVICE in value.tags:
        return {"unmapped " + ON_ONE_DEVICE}
    if not isinstance(value, Array) or value.of not in (PMAP, "replicate"):
        return set()
    if value.row:  # which is replicated on the devices of the map that it comes from
        return {"placed otherwise"} if axis.value is not None and ONE_ROW in value.facts else set()
    split = value.axes if "out_axes" in value.facts else Constant(value=0)
    differs = isinstance(split, Constant) and split.value != axis.value
    return {"placed otherwise"} if differs else set()


def _is_elsewhere(mapped: Mapped, value: Array, axis: Value) -> bool:
    """Return whether an output, or rows of it, is on other devices than a map is over."""
    here = _devices(mapped)
    there = next((fact for fact in value.facts if fact.startswith(_ON)), "")
    if not value.row:
        return bool(here and there) and here != there
    some = _is_over_some(mapped) or _OVER_SOME in value.facts
    is_mapped = isinstance(axis, Constant) and axis.value is not None
    return mapped.kind == PMAP and some and is_mapped and here != there


def _argument_words(mapped: Mapped, argument: Argument, at: int) -> set[str]:
    value = argument.value
    placement = _placement(mapped, argument, at)
    found = {*value.tags, *placement}
    if "unmapped " + ON_ONE_DEVICE in placement:  # which pmap replicates, in any version
        found.discard(ON_ONE_DEVICE)
    if isinstance(value, Items):
        found |= tags_of_items(value) & {"rows of this process", ROWS_FOR_ALL}
        for item in value.items:
            found |= {
                word
                for word in _argument_words(mapped, Argument(item, argument.node), at)
                if word.startswith(("output of ", "row of ", "own output of "))
            }
    if isinstance(value, Array):
        found.add(f"output of {value.of}" if not value.row else f"row of {value.of}")
        if value.maker == id(mapped) and not value.row:
            found.add(f"own output of {value.of}")
        if _is_elsewhere(mapped, value, _in_axis(mapped, argument, at)):
            found.add("on other devices")
    if isinstance(value, Constant) and isinstance(value.value, int | float):
        in_axes = mapped.options.get("in_axes")
        axes = in_axes.value if in_axes is not None else UNKNOWN
        whole = isinstance(axes, Items) and at < len(axes.items)
        each = axes.items[at] if whole and isinstance(axes, Items) else axes
        if isinstance(each, Constant) and each.value is None and in_axes is not None:
            found.add("unmapped Python number")
    return found


def one_process(run: Interpreter, scope: Scope, node: cst.CSTNode, kind: str) -> None:
    """Note that only one process calls what needs all processes."""
    run.note(
        scope,
        "detected",
        node,
        {"detector": frozenset({"one process alone"}), "map": frozenset({kind})},
    )


def note_stage(
    run: Interpreter, scope: Scope, node: cst.CSTNode, mapped: Mapped, word: str
) -> None:
    """Note that a mapped function is lowered or compiled, or what that returned is used."""
    words = {
        "map": frozenset({mapped.kind}),
        "stage": frozenset({word}),
        "wrapper": frozenset({mapped.wrapper} if mapped.wrapper else ()),
    }
    run.note(scope, "stage", node, words)
