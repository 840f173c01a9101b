"""Our own modules as syntax trees: what a name stands for, and what a piece of code uses.

Nothing is imported, so that code can be compared and shown without the JAX that it needs.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import dis
import functools
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

OURS = "conformance"
FORMS = ("clause", "family")  # the decorators that declare clauses
DESCRIBED = "described"  # the decorator that gives a model its text

_BUILTINS = frozenset(dir(builtins))
_ANNOTATIONS = __future__.annotations.compiler_flag
_NOT_RUN = {"type_params", "kind", "ctx", "type_comment", "annotation", "returns"}  # fields


class ModuleMissing(ValueError):
    """A module of this project without a file; the message names it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name is bound at the top of one of our modules."""

    module: str
    name: str


@dataclass(frozen=True, eq=False)  # there is one of each
class Module:
    """A module's lines, the statements that bind names at its top, and its imports."""

    name: str
    lines: tuple[str, ...]
    bound: Mapping[str, ast.stmt]
    imported: Mapping[str, tuple[str, str | None]]

    def place_of(self, name: str) -> Place | None:
        """Return where one of our modules binds what `name` means here; None for all else."""
        if name in self.bound:
            return Place(self.name, name)
        source, attribute = self.imported.get(name, ("", None))
        if attribute is None or source.partition(".")[0] != OURS:
            return None
        return Place(source, attribute)


@functools.cache
def module_of(name: str) -> Module:
    """Read a module of this project from its file; ModuleMissing where there is none."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleMissing(
            f"the module {name} has no source file, so its programs have no identity"
        )
    text = Path(spec.origin).read_text(encoding="utf-8")
    bound: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str | None]] = {}
    for node in _without_texts(ast.parse(text)).body:
        for one in bindings(node):
            bound[one] = node
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.split(".")[0]] = (alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = (node.module or "", alias.name)
    return Module(name, tuple(text.split("\n")), bound, imported)


def _without_texts(tree: ast.Module) -> ast.Module:
    """Remove the decorators that give models their texts: they change nothing that runs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if not _describes(one)]
    return tree


def _describes(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and _is_name(decorator.func, DESCRIBED)


def declares(decorator: ast.expr) -> bool:
    """Return whether a decorator declares clauses: `@clause(...)`, or `@defaults.clause(...)`."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = function.attr if isinstance(function, ast.Attribute) else ""
    return name in FORMS or (isinstance(function, ast.Name) and function.id in FORMS)


@functools.cache
def undeclared(node: ast.AST) -> ast.AST:
    """Return a definition without the decorators that declare clauses; other nodes as they are."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node
    bare = copy.copy(node)
    bare.decorator_list = [one for one in node.decorator_list if not declares(one)]
    return bare


@functools.cache
def is_module(name: str) -> bool:
    """Return whether a dotted name is a module rather than something in one."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@functools.cache
def bindings(node: ast.stmt) -> tuple[str, ...]:
    """Return the names that a statement binds by a definition or an assignment."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = (one for target in targets for one in ast.walk(target))
    return tuple(one.id for one in names if isinstance(one, ast.Name))


@functools.cache
def globals_of(node: ast.AST) -> frozenset[str]:
    """Return the names that a node takes from its module, annotations left out."""
    statement = ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.expr) else node
    assert isinstance(statement, ast.stmt)
    tree = ast.Module([statement], [])
    code = compile(tree, "module", "exec", flags=_ANNOTATIONS, dont_inherit=True)
    return frozenset(name for one in _codes(code) for name in _loaded(one)) - _BUILTINS


@functools.cache
def attributes_of(node: ast.AST) -> frozenset[str]:
    """Return the names that anywhere in a node follow a dot."""
    return frozenset(one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute))


def members_of(node: ast.AST, module: str) -> Iterator[str]:
    """Yield what a node uses of a module that it calls by a name of its own."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and _is_name(one.value, module):
            yield one.attr


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@functools.cache
def places_used(module: Module, node: ast.AST) -> tuple[Place, ...]:
    """Return where the names of our own modules that a node uses are bound, sorted by name."""
    found: list[Place] = []
    for name in sorted(globals_of(node)):
        place = module.place_of(name)
        if place is None:
            continue
        whole = f"{place.module}.{place.name}"
        if name not in module.bound and is_module(whole):
            found += (Place(whole, one) for one in sorted({*members_of(node, name)}))
        else:
            found.append(place)
    return tuple(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _loaded(code: CodeType) -> Iterator[str]:
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(one.argval)


@functools.cache
def tree_of(node: ast.AST) -> str:
    """Return a node's syntax tree as text, without what does not run; every Python writes it alike.

    Left out are positions, docstrings, annotations and the decorators that declare clauses.
    """
    return _text(undeclared(node))


def _text(value: object) -> str:
    if isinstance(value, ast.AST):
        parts = [
            f"{name}={_text(part)}"
            for name, part in ast.iter_fields(value)
            if name not in _NOT_RUN and part not in (None, [])
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, list):
        return f"[{', '.join(_text(one) for one in value if not _is_docstring(one))}]"
    return repr(value)


def _is_docstring(node: object) -> bool:
    """Return whether a statement is a text by itself, which does nothing."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
