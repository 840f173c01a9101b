"""`--fix`: rewrites that a clause proves equal, as a diff and as a file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import MetadataWrapper, PositionProvider

from conformance.scanning.findings import Finding, Replacement
from conformance.scanning.matching import USUAL
from conformance.scanning.sources import Place


@dataclass(frozen=True, slots=True)
class Fixed:
    """A file after rewriting, and the findings that this removes."""

    path: str
    before: str
    after: str
    findings: tuple[Finding, ...]

    @property
    def diff(self) -> str:
        """Return the difference in the format of `git diff`."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"a/{self.path}",
            f"b/{self.path}",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def fix(path: str, text: str, findings: Sequence[Finding]) -> Fixed | None:
    """Return a file with its findings fixed; None if none can be.

    Of overlapping rewrites the outermost is done: another scan finds the rest.
    """
    chosen = _apart([one for one in findings if one.replacement is not None])
    if not chosen:
        return None
    some = [one.replacement for one in chosen if one.replacement is not None]
    if some[0].whole_line:
        after = _without(text, [one.place for one in some])
    else:
        after = _replaced(text, some)
        after = _with_imports(after, [name for one in some for name in one.imports])
    try:
        cst.parse_module(after)
    except cst.ParserSyntaxError:
        return None
    return Fixed(path, text, after, tuple(chosen))


def _replaced(text: str, some: Sequence[Replacement]) -> str:
    starts = _starts(text.split("\n"))
    for one in sorted(some, key=lambda r: (r.place.line, r.place.column), reverse=True):
        begin = starts[one.place.line - 1] + one.place.column - 1
        end = starts[one.place.end_line - 1] + one.place.end_column - 1
        text = text[:begin] + one.text + text[end:]
    return text


def _start(finding: Finding) -> tuple[int, int]:
    return finding.place.line, finding.place.column


def _apart(findings: Sequence[Finding]) -> list[Finding]:
    """Return the outermost of findings that overlap, so that no line is changed twice."""
    found: list[Finding] = []
    taken: list[Place] = []
    order = sorted(findings, key=lambda f: (*_start(f), -f.place.end_line, -f.place.end_column))
    for one in order:
        assert one.replacement is not None
        if not any(_overlap(one.replacement.place, other) for other in taken):
            taken.append(one.replacement.place)
            found.append(one)
    # Removing lines moves those below: the rest is fixed by the next round.
    removed = [f for f in found if f.replacement is not None and f.replacement.whole_line]
    return removed or found


def _overlap(one: Place, other: Place) -> bool:
    return (one.line, one.column) < (other.end_line, other.end_column) and (
        other.line,
        other.column,
    ) < (one.end_line, one.end_column)


def _starts(lines: Sequence[str]) -> list[int]:
    found, at = [], 0
    for line in lines:
        found.append(at)
        at += len(line) + 1
    return found


class _Remover(cst.CSTTransformer):
    """Removes the statements at some places; a block that is left empty gets `pass`."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__()
        self._places = {(one.line, one.column) for one in places}

    def _is_removed(self, node: cst.CSTNode) -> bool:
        start = self.get_metadata(PositionProvider, node).start
        return (start.line, start.column + 1) in self._places

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> Any:  # noqa: N802
        if self._is_removed(original_node.value):
            return cst.RemoveFromParent()
        return updated_node

    def leave_IndentedBlock(  # noqa: N802
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if not updated_node.body:
            return updated_node.with_changes(body=[cst.SimpleStatementLine(body=[cst.Pass()])])
        return updated_node


def _without(text: str, places: Sequence[Place]) -> str:
    wrapper = MetadataWrapper(cst.parse_module(text))
    return wrapper.visit(_Remover(places)).code


def _with_imports(text: str, names: Sequence[str]) -> str:
    if not names:
        return text
    context = CodemodContext()
    for name in dict.fromkeys(names):
        usual = USUAL.get(name)
        AddImportsVisitor.add_needed_import(context, name, asname=usual)
    return AddImportsVisitor(context).transform_module(cst.parse_module(text)).code
