"""Attributes in a scanned program: of modules, of outputs, of instances and their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning import arrays, classes, donations
from conformance.scanning.names import OF_METADATA, canonical
from conformance.scanning.scopes import Scope
from conformance.scanning.values import (
    UNKNOWN,
    Array,
    Class,
    Donated,
    Function,
    Imported,
    Instance,
    Items,
    Mapped,
    Method,
    Module,
    Parent,
    Partial,
    Reference,
    Stage,
    Transformed,
    Value,
)

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def attribute(run: Interpreter, scope: Scope, node: cst.Attribute) -> Value:
    """Return the value of an attribute, noting the events of its lookup."""
    name = node.attr.value
    before = run.metadata
    run.metadata = before or (name if name in OF_METADATA else "")
    owner = run.evaluate(scope, node.value)
    run.metadata = before
    if isinstance(owner, Donated):
        owner = owner.value
    match owner:
        case Reference():
            full = f"{owner.name}.{name}"
            if (inside := run.project.module(full)) is not None:  # of a package without a file
                return Module(name=inside)
            words = frozenset({full, canonical(full)})
            run.note(scope, "name", node, {"name": words, "how": frozenset({"attribute"})})
            return Reference(name=canonical(full))
        case Module():
            inside = run.project.module(f"{owner.name}.{name}")
            if inside is None and owner.name not in run.project.worth_reading:
                return Imported(module=owner.name, name=name)
            exported = run.exported(owner.name)
            if exported is not None and name in exported.variables:
                return exported.variables[name]
            return Module(name=inside) if inside is not None else UNKNOWN
        case Instance():
            value = classes.member(owner, name)
            if isinstance(value, Donated):
                donations.used_again(run, scope, node, value)
                return value.value
            if isinstance(value, Function) and "property" in value.tags:
                return run.call(value, ())
            return value
        case Parent():
            return classes.of_parent(owner, name)
        case Class():
            return classes.of_class(owner, name)
        case Array() | Mapped() | Stage() | Function() | Transformed() | Partial() | Items():
            return arrays.attribute(run, scope, node, owner, name)
    return Method(name=name, owner=owner, node=node.value, tags=frozenset())


def set_attribute(
    run: Interpreter, scope: Scope, target: cst.Attribute, owner: Value, value: Value
) -> None:
    """Note the effect of setting an attribute: an option of `jax.config`."""
    if isinstance(owner, Reference):
        full = canonical(f"{owner.name}.{target.attr.value}")
        words = frozenset({full})
        run.note(scope, "name", target, {"name": words, "how": frozenset({"assignment"})})
