"""Abstract values: what the scanner knows of a value of a scanned program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from conformance.scanning.scopes import Scope

PMAP, SHARD_MAP = "pmap", "shard_map"
EXPLICIT = "explicit mesh"
WHOLE, OTHER_AXIS = "whole", "by another axis"  # an output: replicated, or not split in rows
RESHAPED = "reshaped"  # a device may have several rows of it
NOT_OF_ROWS = frozenset({WHOLE, OTHER_AXIS})
MOST_CHOICES = 4  # functions that a name may stand for
ON_ONE_DEVICE = "on one device"  # of an array: committed to it
PART_OF_DEVICES = "part of devices"  # of a list of devices: not all that it was made of
ONE_ROW = "one row"  # of an array: what an integer index takes out of an output
REPLICATES = "replicates"  # of a jitted function: its results are replicated
SPLITS = "splits"  # of a jitted function: its results are sharded
GLOBAL = "global"  # of an array: made of what several processes have


@dataclass(frozen=True, slots=True)
class Value:
    """A value of which only its `tags` are known."""

    tags: frozenset[str] = frozenset()


UNKNOWN = Value()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Value):
    """A reference to a qualified name outside of the scanned tree, such as `jax.pmap`."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Value):
    """A literal: a text, a number, True, False or None."""

    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Value):
    """A tuple, list or set display, or a mapping's values by its literal keys."""

    items: tuple[Value, ...] = ()
    kind: str = "tuple"
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Function(Value):
    """A function or lambda of the scanned tree, with the scope in which it was defined."""

    node: cst.FunctionDef | cst.Lambda
    scope: Scope
    owner: Value | None = None  # the instance of which it is a bound method

    @property
    def name(self) -> str:
        """The name of its definition, or `lambda`."""
        return self.node.name.value if isinstance(self.node, cst.FunctionDef) else "lambda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Value):
    """One of several functions of the scanned tree: which one is known at run time only."""

    functions: tuple[Function | Transformed | Partial, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Partial(Value):
    """`functools.partial(function, *arguments, **keywords)`."""

    function: Value = UNKNOWN
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An argument of a call: its value, its code, and its keyword or stars."""

    value: Value
    node: cst.BaseExpression
    keyword: str = ""
    star: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Mapped(Value):
    """A mapped function: what jax.pmap or jax.shard_map returns, and how it was made."""

    kind: str = PMAP
    function: Value = UNKNOWN
    options: Mapping[str, Argument] = field(default_factory=dict)
    facts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    returns: Value = UNKNOWN  # what one device returns
    wrapper: str = ""  # the transformation around it: jit


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Transformed(Value):
    """A function under a transformation: jit, vmap, grad, checkpoint."""

    kind: str = ""
    function: Value = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Array(Value):
    """An array, or a tree of them, that a mapped function returned or that holds a row per device.

    `of` is what it comes from: pmap, shard_map, replicate, global. `within` is its shape as a tree:
    None where that is unknown, an Items, or a leaf. `leading` says whether dimension 0 is the
    devices'.
    """

    of: str = PMAP
    leaf: bool = False
    structure: Value = UNKNOWN
    facts: frozenset[str] = frozenset()
    row: bool = False  # cut out of such an array
    axes: Value = UNKNOWN  # the out_axes with which it was returned
    maker: int = 0  # the mapped function that returned it: its id


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Class(Value):
    """A class of the scanned tree."""

    node: cst.ClassDef
    scope: Scope
    bases: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Instance(Value):
    """An instance of a class of the scanned tree; its attributes are in `attributes`."""

    of: Class
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Parent(Value):
    """`super()` in a method of class `of`, which was called on `owner`."""

    of: Class
    owner: Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Module(Value):
    """A module of the scanned tree, by its dotted name."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Value):
    """A name of another module of the tree, resolved on demand."""

    module: str
    name: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stage(Value):
    """A mapped function that was lowered or compiled."""

    level: str = "lowered"
    mapped: Mapped


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Method(Value):
    """A method of a value that is not an instance of a scanned class, such as `out.reshape`."""

    name: str = ""
    owner: Value = UNKNOWN
    node: cst.BaseExpression | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Getter(Value):
    """`operator.itemgetter(index)`."""

    index: Value = UNKNOWN
    node: cst.BaseExpression


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Donated(Value):
    """A variable whose array was passed to a call that donates it."""

    value: Value = UNKNOWN
    unused: bool = False  # the body has no use for the argument, so that new pmap keeps it


_CALLED = (Function, Transformed, Partial, Choice)


def merged(one: Value | None, other: Value | None) -> Value:
    """Return what is known of a variable with one of two values: the better-known one."""
    if one is None or one is other:
        return other or UNKNOWN
    if other is None:
        return one
    for some in (one, other):
        if isinstance(some, Donated):
            return some
    if one == other:
        return one
    if isinstance(one, _CALLED) and isinstance(other, _CALLED):
        return _choice(one, other)
    order = (Mapped, Array, Transformed, Choice, Function, Partial, Instance, Items, Reference)
    for kind in order:
        for some in (one, other):
            if isinstance(some, kind):
                return some
    return Value(one.tags & other.tags)


def merged_all(values: Iterable[Value]) -> Value:
    """Return what is known of one of several values."""
    found: Value | None = None
    for one in values:
        found = merged(found, one)
    return found or UNKNOWN


def _choice(one: Value, other: Value) -> Value:
    found: dict[tuple[int, int], Function | Transformed | Partial] = {}
    for some in (one, other):
        for each in some.functions if isinstance(some, Choice) else (some,):
            if isinstance(each, Function):
                found.setdefault((id(each.node), id(each.owner)), each)
            elif isinstance(each, Transformed | Partial):
                found.setdefault((id(each), 0), each)
    functions = tuple(found.values())[:MOST_CHOICES]
    return Choice(functions=functions) if len(functions) > 1 else functions[0]


def with_tags(value: Value, *tags: str) -> Value:
    """Return an unknown value with tags, and with those of `value`."""
    return Value(value.tags | {*tags})


def is_followed(argument: Argument) -> bool:
    """Return whether the scanner follows an argument through functions."""
    value = argument.value
    if isinstance(value, Items):
        return any(is_followed(Argument(one, argument.node)) for one in value.items)
    return isinstance(
        value, Array | Mapped | Transformed | Partial | Function | Choice | Instance | Donated
    )


def fingerprint(value: Value) -> Any:
    """Return the part of an argument on which a function's result depends."""
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
        case Choice():
            return tuple(map(id, value.functions))
        case Mapped() | Function() | Transformed() | Partial() | Instance() | Class():
            return id(value)
    return tuple(sorted(value.tags))
