"""The text of a clause's declaration: its probe, and the row of each table that it uses.

Rows that are literals in a table are found in the module's text. A row that is computed has no text
of its own: its table stands for it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.catalogue.modules import OURS, Module, declares, module_of
from conformance.spec.clause import Clause


@dataclass(frozen=True, slots=True)
class Found:
    """A row's expression in its table, and the module that contains it."""

    module: str
    node: ast.expr


def source_text(clause: Clause) -> str:
    """Return what a person wrote for a clause: each row with its file and line, then the probe."""
    parts = []
    for name, row in rows(clause).items():
        if row is None:
            parts.append(f"# {name} = {clause.parameters[name]!r}, a row that its table makes")
        else:
            module = module_of(row.module)
            where = f"# {_file(row.module)}:{row.node.lineno}"
            parts.append(f"{where}\n{name} = {_text(module, row.node)}")
    home = module_of(clause.probe.__module__)
    probe = home.bound.get(clause.probe.__name__)
    if isinstance(probe, ast.FunctionDef):
        parts.append(f"# {_file(home.name)}:{probe.lineno}\n{_text(home, probe)}")
    return "\n\n".join(parts) + "\n"


def line_of(clause: Clause) -> tuple[str, int] | None:
    """Return the module and line of the first row that is a call; None without one."""
    for found in rows(clause).values():
        if found is not None and isinstance(found.node, ast.Call):
            return found.module, found.node.lineno
    return None


def rows(clause: Clause) -> dict[str, Found | None]:
    """Return each table's row as written; None if only running the module can tell."""
    home = module_of(clause.probe.__module__)
    tables = tables_of(clause)
    return {
        name: _row(home, tables[name], clause.parameters[name]) if name in tables else None
        for name in clause.rows
    }


def tables_of(clause: Clause) -> dict[str, ast.expr]:
    """Return the tables of the family that made a clause, as written at its probe.

    Several families of one probe may have one id with other tables: the one with these rows is
    used. Empty if no decorator at the probe has these tables, as when a helper declares it.
    """
    home = module_of(clause.probe.__module__)
    probe = home.bound.get(clause.probe.__name__)
    if not clause.rows or not isinstance(probe, ast.FunctionDef):
        return {}
    found = [
        (_is_id(decorator, clause), {k.arg: k.value for k in decorator.keywords if k.arg})
        for decorator in probe.decorator_list
        if isinstance(decorator, ast.Call) and declares(decorator)
    ]
    found = [(named, rows) for named, rows in found if rows.keys() >= clause.rows.keys()]
    if not found:
        return {}
    # An id that is put together as the module runs cannot be read.
    found = [one for one in found if one[0]] or found
    return next((rows for _, rows in found if _have(home, rows, clause.parameters)), found[0][1])


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _text(module: Module, node: ast.expr | ast.FunctionDef) -> str:
    """Return a node as written, without the decorators that declare clauses."""
    first = node.lineno
    for decorator in getattr(node, "decorator_list", ()):
        if not declares(decorator):
            first = min(first, decorator.lineno)
    lines = list(module.lines[first - 1 : node.end_lineno])
    if isinstance(node, ast.FunctionDef):
        return "\n".join(lines)
    # Its first line is indented as the others are, so that all can be dedented.
    lines[-1] = _bytes_of(lines[-1], 0, node.end_col_offset)
    start = _bytes_of(module.lines[first - 1], 0, node.col_offset)
    lines[0] = start[: len(start) - len(start.lstrip())] + lines[0][len(start) :]
    return textwrap.dedent("\n".join(lines))


def _bytes_of(line: str, first: int, last: int | None) -> str:
    """Return a part of a line; the syntax tree counts bytes."""
    return line.encode()[first:last].decode()


def _have(module: Module, tables: Mapping[str, ast.expr], keys: Mapping[str, str]) -> bool:
    """Return whether the tables contain the rows, or their keys in the code that makes them."""
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
    made = "".join(clause.parameters.get(p, "") if at % 2 else p for at, p in enumerate(parts))
    return clause.id == made or clause.id.startswith(f"{made}.")  # a further check of its run


def _row(module: Module, table: ast.expr, key: str) -> Found | None:
    """Return the row with this key in a table's expression."""
    return next(_rows_of(module, table, key), None)


def _rows_of(module: Module, table: ast.expr, key: str) -> Iterator[Found]:
    match table:
        case ast.Name(name) if name in module.bound:
            value = getattr(module.bound[name], "value", None)
            if value is not None:
                yield from _rows_of(module, value, key)
        case ast.Name(name):
            source, original = module.imported.get(name, ("", None))
            if original is not None and source.startswith(OURS):
                yield from _rows_of(module_of(source), ast.Name(original, ast.Load()), key)
        case ast.Dict(keys, values):
            for at, value in zip(keys, values, strict=True):
                if at is None:
                    yield from _rows_of(module, value, key)
                elif isinstance(at, ast.Constant) and at.value == key:
                    yield Found(module.name, value)
        case ast.DictComp():  # some rows of another table
            for one in ast.walk(table):
                if isinstance(one, ast.Name) and one.id.isupper():
                    yield from _rows_of(module, one, key)
        case ast.Call(args=rows):
            yield from (Found(module.name, row) for row in rows if _has_key(row, key))


def _has_key(row: ast.expr, key: str) -> bool:
    """Return whether a row, written as a call, has this key: its first argument, or `key`."""
    if not isinstance(row, ast.Call):
        return False
    keys = (*row.args[:1], *(one.value for one in row.keywords if one.arg == "key"))
    return any(isinstance(one, ast.Constant) and one.value == key for one in keys)
