"""Notebooks: the code of their cells as one program, and in which cell each of its lines is."""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SUFFIX = ".ipynb"
MOST_BYTES = 16 << 20  # of a file: most of a notebook are the outputs that it keeps
# What IPython takes and Python does not: magics, shell commands, requests for help.
_NOT_PYTHON = re.compile(r"^(\s*)([%!?].*|[\w.\s,]+=\s*[%!].*|.*[^\s#]\?\??\s*)$")
# Cell magics whose cells are Python; those of others are another language's.
_OF_PYTHON = ("%%time", "%%timeit", "%%capture", "%%prun", "%%python3")


class NotebookError(ValueError):
    """A file that is no notebook; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with code: its number, from 1 on and counting cells of text, and its first line."""

    number: int
    line: int  # in the program of all cells


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook as one program."""

    text: str
    cells: tuple[Cell, ...]


def parse_notebook(text: str) -> Notebook:
    """Read a notebook; NotebookError where the text is none.

    A line that is no Python is replaced by `pass`; a cell that does not parse even so is left out.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotebookError("it is not a notebook: its JSON cannot be read") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("cells"), list):
        raise NotebookError("it is not a notebook of format 4: it has no cells")
    lines: list[str] = []
    cells: list[Cell] = []
    for number, code in _codes(raw["cells"]):
        cells.append(Cell(number, len(lines) + 1))
        lines += code
    return Notebook("\n".join(lines) + "\n", tuple(cells))


def cell_at(cells: Sequence[Cell], line: int) -> Cell:
    """Return the cell that a line of the program is in."""
    return cells[max(0, bisect_right([one.line for one in cells], line) - 1)]


def _codes(cells: Sequence[Any]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each cell of code, with its lines as Python."""
    for number, one in enumerate(cells, 1):
        if not isinstance(one, dict) or one.get("cell_type") != "code":
            continue
        source = one.get("source", "")
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        if isinstance(source, str) and (code := _python(source)):
            yield number, code


def _python(source: str) -> list[str]:
    """Return the lines of a cell, none where it is no Python; their number stays the same."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].startswith("%%") and not lines[0].startswith(_OF_PYTHON):
        return []
    if not _parses(lines):
        lines = [_NOT_PYTHON.sub(r"\1pass", line) for line in lines]
    return lines if _parses(lines) else []


def _parses(lines: Sequence[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
