"""Add an import to a module's text, in sorted position."""

from __future__ import annotations

import ast
import sys

LINE = 100  # characters
_FUTURE, _STANDARD, _OTHERS, _OURS = range(4)
_OUR_PACKAGES = ("conformance", "harness", "reports")

Import = ast.Import | ast.ImportFrom


def importing(text: str, source: str, name: str) -> str:
    """Return `text` with `from source import name` among its imports."""
    lines = text.splitlines()
    imports = [node for node in ast.parse(text).body if isinstance(node, Import)]
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module == source:
            names = [ast.unparse(alias) for alias in node.names]
            lines[node.lineno - 1 : node.end_lineno] = _import(source, [*names, name])
            return "\n".join(lines) + "\n"
    group = _group(source)
    beside = [node for node in imports if _key(node)[0] == group]
    before = [node for node in beside if _key(node) < (group, True, source)]
    if before:
        at, new = before[-1].end_lineno or 0, _import(source, [name])
    elif beside:
        at, new = beside[0].lineno - 1, _import(source, [name])
    else:
        above = [node for node in imports if _key(node)[0] < group]
        at = (above[-1].end_lineno or 0) if above else 0
        new = ["", *_import(source, [name])]
    return "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"


def _key(node: Import) -> tuple[int, bool, str]:
    """Sort key of imports: whole modules come before names from modules."""
    plain = isinstance(node, ast.Import)
    module = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return _group(module), not plain, module


def _group(module: str) -> int:
    first = module.partition(".")[0]
    if first == "__future__":
        return _FUTURE
    if first in sys.stdlib_module_names:
        return _STANDARD
    return _OURS if first in _OUR_PACKAGES else _OTHERS


def _import(source: str, names: list[str]) -> list[str]:
    """Return the import's lines: constants first, then classes, then the rest; one name per line if
    long.
    """
    ordered = sorted(names, key=lambda one: (not one.isupper(), not one[0].isupper(), one))
    line = f"from {source} import {', '.join(ordered)}"
    if len(line) <= LINE:
        return [line]
    return [f"from {source} import (", *(f"    {one}," for one in ordered), ")"]
