"""Our own modules, read as text: what a name stands for, what it uses, where a row is written.

Nothing is imported for it, so that a program can be shown without the JAX that it needs.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import dis
import functools
import importlib.util
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from conformance.catalogue.clause import Clause

OURS = "conformance"
FORMS = ("clause", "family")

_BUILTINS = frozenset(dir(builtins))
_ANNOTATIONS = __future__.annotations.compiler_flag


class ProgramError(ValueError):
    """A program's text cannot be put together; the message says of what."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name is bound at the top of one of our modules."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Found:
    """A row's expression in its table, and the module that it is written in."""

    module: str
    node: ast.expr


@dataclass(frozen=True, eq=False)  # there is one of each
class Module:
    """A module's text, what it binds at its top, and what it imports there."""

    name: str
    lines: tuple[str, ...]
    bound: Mapping[str, ast.stmt]
    imported: Mapping[str, tuple[str, str | None]]

    @functools.cache  # noqa: B019 (modules are kept as long as the process lives)
    def text(self, node: ast.AST) -> str:
        """The node as written, without the decorators that declare clauses."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        for decorator in getattr(node, "decorator_list", ()):
            if not declares(decorator):
                first = min(first, decorator.lineno)
        lines = list(self.lines[first - 1 : last])
        if isinstance(node, ast.expr):
            # Its first line is indented as the others are, so that all can be dedented.
            lines[-1] = _bytes_of(lines[-1], 0, node.end_col_offset)
            start = _bytes_of(self.lines[first - 1], 0, node.col_offset)
            lines[0] = start[: len(start) - len(start.lstrip())] + lines[0][len(start) :]
            return textwrap.dedent("\n".join(lines))
        return "\n".join(lines)


def _bytes_of(line: str, first: int, last: int | None) -> str:
    """A part of a line; the syntax tree counts bytes."""
    return line.encode()[first:last].decode()


@functools.cache
def module_of(name: str) -> Module:
    """A module of this project, read from its file."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ProgramError(f"the module {name} is not there")
    text = Path(spec.origin).read_text(encoding="utf-8")
    bound: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str | None]] = {}
    for node in ast.parse(text).body:
        for one in bindings(node):
            bound[one] = node
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.split(".")[0]] = (alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = (node.module or "", alias.name)
    return Module(name, tuple(text.split("\n")), bound, imported)


def line_of(clause: Clause) -> tuple[str, int] | None:
    """The module and line of the first of a clause's rows that is a literal; None without one."""
    for found in rows(clause).values():
        if found is not None and isinstance(found.node, ast.Call):
            return found.module, found.node.lineno
    return None


def rows(clause: Clause) -> dict[str, Found | None]:
    """Each table's row as it is written; None where only running the module can tell."""
    home = module_of(clause.probe.__module__)
    written = tables(clause)
    return {name: _row(home, written[name], clause.parameters[name]) for name in clause.rows}


def tables(clause: Clause) -> dict[str, ast.expr]:
    """The tables of the family that made a clause, as they are written at its probe.

    Several families of one probe may have one id with other tables: it is the one with these rows.
    """
    home = module_of(clause.probe.__module__)
    probe = home.bound.get(clause.probe.__name__)
    if not isinstance(probe, ast.FunctionDef):
        raise ProgramError(f"{clause.id}: its probe is no function at the top of {home.name}")
    if not clause.rows:
        return {}
    found = [
        (_is_id(decorator, clause), {k.arg: k.value for k in decorator.keywords if k.arg})
        for decorator in probe.decorator_list
        if isinstance(decorator, ast.Call) and declares(decorator)
    ]
    found = [(named, its) for named, its in found if its.keys() >= clause.rows.keys()]
    if not found:
        raise ProgramError(f"{clause.id}: no declaration at its probe in {home.name} has its rows")
    # An id that is put together as the module runs cannot be read.
    found = [one for one in found if one[0]] or found
    return next((its for _, its in found if _have(home, its, clause.parameters)), found[0][1])


def _have(module: Module, tables: Mapping[str, ast.expr], keys: Mapping[str, str]) -> bool:
    """Whether the rows stand in the tables, or their keys in what makes the tables."""
    return all(
        _row(module, tables[name], key) is not None
        or key in [n.value for n in ast.walk(tables[name]) if isinstance(n, ast.Constant)]
        for name, key in keys.items()
    )


def _is_id(decorator: ast.Call, clause: Clause) -> bool:
    template = decorator.args[0] if decorator.args else None
    if not isinstance(template, ast.Constant) or not isinstance(template.value, str):
        return False
    parts = re.split(r"\{(\w+)\}", template.value)
    said = "".join(clause.parameters.get(p, "") if at % 2 else p for at, p in enumerate(parts))
    return said == clause.id


def _row(module: Module, table: ast.expr, key: str) -> Found | None:
    """The row with this key in a table's expression."""
    if isinstance(table, ast.Name):
        if table.id in module.bound:
            value = getattr(module.bound[table.id], "value", None)
            return None if value is None else _row(module, value, key)
        source, name = module.imported.get(table.id, ("", None))
        if name is None or not source.startswith(OURS):
            return None
        return _row(module_of(source), ast.Name(name, ast.Load()), key)
    if isinstance(table, ast.Dict):
        for at, value in zip(table.keys, table.values, strict=True):
            if at is None:
                found = _row(module, value, key)
                if found is not None:
                    return found
            elif isinstance(at, ast.Constant) and at.value == key:
                return Found(module.name, value)
    if isinstance(table, ast.DictComp):  # some rows of another table
        for one in ast.walk(table):
            if isinstance(one, ast.Name) and one.id.isupper():
                found = _row(module, one, key)
                if found is not None:
                    return found
    if isinstance(table, ast.Call):
        for row in table.args:
            if isinstance(row, ast.Call) and key in [
                one.value
                for one in (*row.args[:1], *(k.value for k in row.keywords if k.arg == "key"))
                if isinstance(one, ast.Constant)
            ]:
                return Found(module.name, row)
    return None


def declares(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(function, ast.Name) and function.id in FORMS


@functools.cache
def undeclared(node: ast.AST) -> ast.AST:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node
    bare = copy.copy(node)
    bare.decorator_list = [one for one in node.decorator_list if not declares(one)]
    return bare


@functools.cache
def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@functools.cache
def bindings(node: ast.stmt) -> tuple[str, ...]:
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
    """The names that a node takes from its module, annotations left out."""
    statement = ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.expr) else node
    assert isinstance(statement, ast.stmt)
    tree = ast.Module([statement], [])
    code = compile(tree, "program", "exec", flags=_ANNOTATIONS, dont_inherit=True)
    return frozenset(name for one in _codes(code) for name in _loaded(one)) - _BUILTINS


@functools.cache
def attributes_of(node: ast.AST) -> frozenset[str]:
    """The names that anywhere in a node follow a dot."""
    return frozenset(one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute))


@functools.cache
def members_of(node: ast.AST, module: str) -> tuple[str, ...]:
    """What of a module's a node uses, where it calls the module by a name of its own."""
    found = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
    named = (one for one in found if isinstance(one.value, ast.Name) and one.value.id == module)
    return tuple(sorted({one.attr for one in named}))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _loaded(code: CodeType) -> Iterator[str]:
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(one.argval)
