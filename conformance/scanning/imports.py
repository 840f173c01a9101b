"""Imports of a scanned program: of modules of the tree, and of names outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from conformance.scanning.names import canonical
from conformance.scanning.scopes import Scope
from conformance.scanning.values import UNKNOWN, Imported, Module, Reference, Value

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter


def import_modules(run: Interpreter, scope: Scope, node: cst.Import) -> None:
    """Bind the names of `import a.b as c`."""
    for one in node.names:
        name = dotted(one.name)
        _named(run, scope, one, name)
        if one.asname is not None and isinstance(one.asname.name, cst.Name):
            scope.variables[one.asname.name.value] = _module(run, name)
        else:
            first = name.split(".")[0]
            scope.variables[first] = _module(run, first)


def import_names(run: Interpreter, scope: Scope, node: cst.ImportFrom) -> None:
    """Bind the names of `from a import b as c`."""
    base = dotted(node.module) if node.module is not None else ""
    if node.relative:
        package = scope.source.package.split(".")
        keep = len(package) - len(node.relative) + 1
        base = ".".join([*package[: max(keep, 0)], *filter(None, [base])])
    inside = run.project.module(base) if base else None
    if isinstance(node.names, cst.ImportStar):
        exported = run.exported(inside) if inside else None
        scope.variables.update(exported.variables if exported else {})
        return
    for one in node.names:
        name = dotted(one.name)
        bound = name
        if one.asname is not None and isinstance(one.asname.name, cst.Name):
            bound = one.asname.name.value
        full = f"{base}.{name}" if base else name
        scope.variables[bound] = _imported(run, scope, one, inside, full, name)


def _imported(
    run: Interpreter, scope: Scope, node: cst.ImportAlias, inside: str | None, full: str, name: str
) -> Value:
    module = run.project.module(full)
    if module is not None:
        return Module(name=module)
    if inside is not None and inside in run.project.worth_reading:
        exported = run.exported(inside)
        return exported.variables.get(name, UNKNOWN) if exported else UNKNOWN
    if inside is not None:
        return Imported(module=inside, name=name)
    _named(run, scope, node, full)
    return Reference(name=canonical(full))


def _module(run: Interpreter, name: str) -> Value:
    inside = run.project.module(name)
    return Module(name=inside) if inside is not None else Reference(name=canonical(name))


def _named(run: Interpreter, scope: Scope, node: cst.CSTNode, name: str) -> None:
    words = frozenset({name, canonical(name)})
    how = "fallback import" if "fallback" in run.within else "import"
    run.note(scope, "name", node, {"name": words, "how": frozenset({how})})


def dotted(node: cst.BaseExpression) -> str:
    """Return the text of a dotted name."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def last_name(node: cst.BaseExpression) -> str:
    """Return the last part of a dotted name; empty if it is none."""
    return dotted(node).rpartition(".")[2]
