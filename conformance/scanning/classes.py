"""Classes of a scanned program: their instances, members and base classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    UNKNOWN,
    Argument,
    Class,
    Constant,
    Function,
    Instance,
    Mapped,
    Parent,
    Partial,
    Reference,
    Transformed,
    Value,
    with_tags,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


_MOST_BASES = 5
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.Flag", "enum.IntFlag"})


def bound_to(value: Value, owner: Instance) -> Value:
    """Return a mapped or transformed method as an attribute of an instance, which takes `self`."""
    first = Argument(owner, cst.Name("self"))
    return Partial(function=value, arguments=(first,))


def of_class(owner: Class, name: str) -> Value:
    """Return an attribute of a class."""
    if name in owner.scope.variables and _is_text_less_enum(owner):
        return with_tags(UNKNOWN, "not a text")
    found = _of_bases(owner, name)
    if isinstance(found, Function) and "classmethod" in found.tags:
        return replace(found, owner=owner)
    return found


def of_parent(owner: Parent, name: str) -> Value:
    """Return an attribute of `super()`."""
    for base in owner.of.bases:
        value = _of_bases(base, name) if isinstance(base, Class) else UNKNOWN
        if isinstance(value, Function):
            return Function(node=value.node, scope=value.scope, owner=owner.owner)
        if isinstance(value, Mapped | Transformed | Partial):
            return bound_to(value, owner.owner)
    return UNKNOWN


def member(owner: Instance, name: str) -> Value:
    """Return an attribute of an instance: its own, or its class's."""
    if name in owner.attributes:
        return owner.attributes[name]
    value = _of_bases(owner.of, name)
    if isinstance(value, Function):
        if "staticmethod" in value.tags:
            return value
        return Function(node=value.node, scope=value.scope, owner=owner, tags=value.tags)
    if isinstance(value, Mapped | Transformed | Partial) and "staticmethod" not in value.tags:
        return bound_to(value, owner)
    return value


def _of_bases(owner: Class, name: str, depth: int = 0) -> Value:
    if name in owner.scope.variables:
        return owner.scope.variables[name]
    for base in owner.bases:
        if isinstance(base, Class) and depth < _MOST_BASES:
            found = _of_bases(base, name, depth + 1)
            if found is not UNKNOWN:
                return found
    return UNKNOWN


def parent(scope: Scope) -> Value:
    """Return the value of `super()`: the instance, with the methods of the base classes alone."""
    method: Scope | None = scope
    while method is not None and not (method.parent is not None and method.parent.of_class):
        method = method.parent
    owner = (
        next((one for one in method.variables.values() if isinstance(one, Instance)), None)
        if method
        else None
    )
    if owner is None or method is None:
        return UNKNOWN
    base: Class | None = owner.of
    while base is not None and base.scope is not method.parent:
        base = next((one for one in base.bases if isinstance(one, Class)), None)
    return Parent(of=base, owner=owner) if base is not None else UNKNOWN


def functions(owner: Class, depth: int = 0) -> list[Function]:
    """Return the methods of a class, with those that it inherits from classes of the program."""
    found = {k: v for k, v in owner.scope.variables.items() if isinstance(v, Function)}
    for base in owner.bases:
        if isinstance(base, Class) and depth < _MOST_BASES:
            for one in functions(base, depth + 1):
                if one.name not in owner.scope.variables:
                    found.setdefault(one.name, one)
    return list(found.values())


def _fields(owner: Class) -> list[str]:
    """Return the names that a class annotates: of a dataclass or NamedTuple the arguments."""
    return [
        line.target.value
        for statement in owner.node.body.body
        if isinstance(statement, cst.SimpleStatementLine)
        for line in statement.body
        if isinstance(line, cst.AnnAssign) and isinstance(line.target, cst.Name)
    ]


def _is_text_less_enum(owner: Class) -> bool:
    """Return whether a class is an Enum whose members are no texts."""
    names = [one.name for one in owner.bases if isinstance(one, Reference)]
    return any(one in _ENUMS for one in names) and "str" not in names


def instance_of(run: Interpreter, owner: Class, arguments: Sequence[Argument] = ()) -> Instance:
    """Return an instance of a class of the program, after its __init__."""
    instance = Instance(of=owner)
    init = _of_bases(owner, "__init__")
    if isinstance(init, Function):
        run.call(Function(node=init.node, scope=init.scope, owner=instance), arguments)
    elif arguments:
        for name, one in zip(_fields(owner), arguments, strict=False):
            if not (one.keyword or one.star):
                instance.attributes[name] = one.value
        named = {one.keyword: one.value for one in arguments if one.keyword}
        instance.attributes.update(named)
        run.instances[id(owner.node)] = instance
        after = _of_bases(owner, "__post_init__")
        if isinstance(after, Function):
            run.call(Function(node=after.node, scope=after.scope, owner=instance), ())
    return instance


def set_by_name(arguments: Sequence[Argument]) -> Value:
    """Bind an attribute of an instance of the program by `setattr(instance, "name", value)`."""
    owner, name, value = (one.value for one in arguments)
    if isinstance(owner, Instance) and isinstance(name, Constant):
        owner.attributes[str(name.value)] = value
    return UNKNOWN
