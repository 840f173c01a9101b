"""A file of the scanned tree: its text, its syntax tree, and positions in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import libcst as cst

from conformance.scanning import notebooks
from conformance.scanning.notebooks import Cell, Notebook
from conformance.scanning.positions import Range, positions

MOST_BYTES = 1 << 20  # of a file
MOST_DEPTH = 150  # nested nodes of a file: LibCST's parser has no bound of its own
_INIT = "__init__"
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


class UnreadableError(ValueError):
    """A file that is not scanned; the message says why."""


# Functions that refuse a mesh whose axes are Auto.
_OF_SEVERAL_PROCESSES = re.compile(
    r"distributed\.initialize|\bprocess_(?:index|count)\b|\bhost_(?:id|count)\b|\bmultihost_utils\b"
)
_AXIS_NAME = re.compile(r"""\baxis_name\s*=\s*["'](\w+)["']|\bpmap\([\w.]+, *["'](\w+)["']""")
USUAL_AXIS = "i"
_USES_PMAP = re.compile(r"\.pmap\b|\bpmap\(|\bimport\b[^\n]*\bpmap\b")
_OF_EXPLICIT_AXES = re.compile(
    r"\bjax\.(?:sharding\.)?(?:reshard|explicit_axes)\("
    r"|\bfrom jax(?:\.sharding)? import [^\n]*\b(?:reshard|explicit_axes)\b"
)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of something: lines and columns from 1 on, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(eq=False)
class Source:
    """A Python file, parsed on demand."""

    path: str  # as it is reported
    module: str  # its dotted name within the tree
    text: str
    cells: tuple[Cell, ...] = ()  # of a notebook

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, Range]:
        # It takes longer than all else, and few files have a finding.
        return positions(self.tree)

    @cached_property
    def style(self) -> frozenset[str]:
        """Return the style of code that a file is written in, in the words of rules."""
        found = {"explicit axes"} if _OF_EXPLICIT_AXES.search(self.text) else set()
        return frozenset(found | ({"several processes"} if self.of_several_processes else set()))

    @cached_property
    def of_several_processes(self) -> bool:
        """Return whether a program is written for several processes."""
        return _OF_SEVERAL_PROCESSES.search(self.text) is not None

    @cached_property
    def axis_name(self) -> str:
        """Return the axis name of the file's maps, if all have one; else the usual one."""
        names = {one for found in _AXIS_NAME.findall(self.text) for one in found if one}
        return names.pop() if len(names) == 1 else USUAL_AXIS

    @cached_property
    def uses_pmap(self) -> bool:
        """Return whether a program uses pmap: this is asked for each of its functions."""
        return _USES_PMAP.search(self.text) is not None

    @cached_property
    def tree(self) -> cst.Module:
        """Return the syntax tree; UnreadableError if the text is not Python or is nested too
        deeply.
        """
        check_depth(self.text)
        try:
            with _unvalidated():
                return cst.parse_module(self.text)
        except cst.ParserSyntaxError as error:
            raise UnreadableError(f"LibCST cannot parse it: {error}".split("\n")[0]) from error
        except RecursionError as error:
            raise UnreadableError("it is nested too deeply") from error

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file without their ends; `lines[n - 1]` is line n."""
        return self.text.split("\n")

    @property
    def package(self) -> str:
        """Return the dotted name of the package that relative imports start from."""
        if PurePosixPath(self.path).stem == _INIT:
            return self.module
        return self.module.rpartition(".")[0]

    def place(self, node: cst.CSTNode) -> Place:
        """Return the position of a node."""
        found = self._positions.get(node)
        if found is None:
            return Place(1, 1, 1, 1)
        (line, column), (end_line, end_column) = found
        return Place(line, column + 1, end_line, end_column + 1)

    def code(self, node: cst.CSTNode) -> str:
        """Return the text of a node, as written."""
        at = self.place(node)
        some = self.lines[at.line - 1 : at.end_line]
        if not some:
            return ""
        if len(some) == 1:
            return some[0][at.column - 1 : at.end_column - 1]
        return "\n".join([some[0][at.column - 1 :], *some[1:-1], some[-1][: at.end_column - 1]])


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Let LibCST make nodes without validating each, which its parser has no need for."""
    validate = cst.CSTNode.__post_init__
    cst.CSTNode.__post_init__ = _valid  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = validate  # type: ignore[method-assign]


def _valid(node: cst.CSTNode) -> None:
    pass


def read_python(file: Path) -> Notebook:
    """Return the program of a Python file or a notebook; UnreadableError if it has none."""
    if file.suffix.lower() != notebooks.SUFFIX:
        return Notebook(read_text(file), ())
    try:
        found = notebooks.parse_notebook(read_text(file, notebooks.MOST_BYTES))
    except notebooks.NotebookError as error:
        raise UnreadableError(str(error)) from error
    if len(found.text) > MOST_BYTES:
        raise UnreadableError(f"its code is larger than {MOST_BYTES >> 20} MiB")
    return found


def read_text(file: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file; UnreadableError if it is too large or not text."""
    try:
        if file.stat().st_size > most_bytes:
            raise UnreadableError(f"it is larger than {most_bytes >> 20} MiB")
        data = file.read_bytes()
    except OSError as error:
        raise UnreadableError(error.strerror or "it cannot be read") from error
    first = b"\n".join(data.split(b"\n", 2)[:2])
    coding = _CODING.match(first)
    try:
        text = data.decode(coding[1].decode() if coding else "utf-8-sig")
    except (LookupError, UnicodeDecodeError) as error:
        raise UnreadableError("it is not valid text of its encoding") from error
    if "\0" in text:
        raise UnreadableError("it is not text: it has a null character")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class NewlineStyle:
    """The line ends of a file, and whether it begins with a byte order mark."""

    newline: str
    mark: str

    def restore(self, text: str) -> str:
        """Return a text with the file's line ends."""
        return self.mark + text.replace("\n", self.newline)


def newline_style(file: Path) -> NewlineStyle | None:
    """Return a file's line ends; None if it is not UTF-8, or mixes several."""
    data = file.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    windows, returns = text.count("\r\n"), text.count("\r")
    if returns != windows or windows not in (0, text.count("\n")):
        return None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return NewlineStyle("\r\n" if windows else "\n", mark)


def check_depth(text: str) -> None:
    """Raise UnreadableError if Python cannot parse a text, or its syntax tree is too deep.

    LibCST's parser is native code that crashes on deeply nested text.
    """
    try:
        level: list[ast.AST] = [ast.parse(text)]
    except SyntaxError as error:
        raise UnreadableError(f"line {error.lineno}: {error.msg}") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise UnreadableError("it is nested too deeply") from error
    depth = 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise UnreadableError(f"it is nested more than {MOST_DEPTH} deep")
        level = [child for node in level for child in _children(node)]


_NO_CHILD = frozenset({str, int, bool, type(None), ast.Load, ast.Store, ast.Del})


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that may have children, faster than `ast.iter_child_nodes`."""
    for value in vars(node).values():
        if type(value) is list:
            yield from (one for one in value if isinstance(one, ast.AST))
        elif type(value) not in _NO_CHILD and isinstance(value, ast.AST):
            yield value


def dotted_name(path: PurePosixPath) -> str:
    """Return the dotted name of a file within its tree."""
    parts = path.with_suffix("").parts
    if path.suffix.lower() == notebooks.SUFFIX:
        return f"{'.'.join(parts)}:notebook"  # which no import names
    return ".".join(parts[:-1] if parts and parts[-1] == _INIT else parts)
