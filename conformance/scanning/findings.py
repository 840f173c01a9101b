"""The content of a scan's report: findings, and unread files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.catalogue.finds import SEVERITIES
from conformance.scanning.notebooks import Cell, cell_at
from conformance.scanning.sources import Place

UNCHANGED = "unchanged"  # in place of a severity: both sides have the issue
ORDER: Mapping[str, int] = {word: at for at, word in enumerate((*SEVERITIES, UNCHANGED))}


@dataclass(frozen=True, slots=True)
class Replacement:
    """What `--fix` would write at `place`, and the imports that it needs."""

    place: Place
    text: str
    imports: tuple[str, ...] = ()  # qualified names that must be bound in the module
    whole_line: bool = False  # the statement goes


@dataclass(frozen=True, slots=True)
class Change:
    """What a known issue changes between the two sides.

    `severity` is the most severe effect, `effects` are all of them, `processes` the numbers of
    processes with which it shows: one, several. `refused` is whether the programs that show it
    raised before as well.
    """

    severity: str
    effects: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Issue:
    """The part of a known issue that a finding names."""

    slug: str
    title: str
    sentence: str
    edit: str
    links: tuple[str, ...]
    remedies: tuple[str, ...]
    program: str
    change: Change


@dataclass(frozen=True, slots=True)
class Finding:
    """A known issue that concerns a place in the scanned code."""

    path: str
    place: Place
    line_text: str
    issue: Issue
    says: str
    before: str
    after: str = ""
    proved: str = ""
    replacement: Replacement | None = None
    also: tuple[Issue, ...] = ()
    once: str = ""  # a file has one such finding, which counts the others by this noun
    cell: int = 0  # of a notebook, in which `place` is then; 0 for other files

    @property
    def spot(self) -> str:
        """The file and the line, as people and editors know them."""
        cell = f":cell {self.cell}" if self.cell else ""
        return f"{self.path}{cell}:{self.place.line}"

    @property
    def severity(self) -> str:
        """The severity of the issue's change, a word of the rules."""
        return self.issue.change.severity

    @property
    def key(self) -> tuple[str, Place, str]:
        """Sort key, and identity: an issue is reported once per place."""
        return self.path, self.place, self.issue.slug


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was not scanned, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a scan found, ordered by file and line."""

    old: str
    new: str
    findings: tuple[Finding, ...]
    unread: tuple[Unread, ...] = ()
    files: int = 0
    parsed: int = 0
    ignored: int = 0

    def at_least(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of at least a severity."""
        return tuple(one for one in self.findings if ORDER[one.severity] <= ORDER[severity])


def in_cell(finding: Finding, cells: Sequence[Cell]) -> Finding:
    """Return a finding of a notebook with its cell and the line there; `--fix` leaves it."""
    cell, at = cell_at(cells, finding.place.line), finding.place
    before = cell.line - 1
    place = Place(at.line - before, at.column, at.end_line - before, at.end_column)
    return replace(finding, place=place, cell=cell.number, proved="", replacement=None)


def once_in_each_file(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the first alone of those that a file has once; it counts the others."""
    kept: list[Finding] = []
    repeated: dict[tuple[str, str], dict[tuple[int, Place], Finding]] = {}
    for one in findings:
        if one.once:
            repeated.setdefault((one.path, one.issue.slug), {})[one.cell, one.place] = one
        else:
            kept.append(one)
    for places in repeated.values():
        first = places[min(places, key=lambda at: (at[0], at[1].line, at[1].column))]
        others = len(places) - 1
        count = f", and {others} more {first.once} in this file" if others else ""
        kept.append(replace(first, says=first.says + count))
    return kept


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by file and line, each once, those of one place joined."""
    places: dict[tuple[str, int, int, int], dict[str, Finding]] = {}
    for one in sorted(findings, key=lambda f: (-f.place.end_line, -f.place.end_column)):
        start = one.path, one.cell, one.place.line, one.place.column
        known = places.setdefault(start, {}).get(one.issue.slug)
        if known is None or (one.replacement is not None and known.replacement is None):
            places[start][one.issue.slug] = one
    some = [_together(list(found.values())) for found in places.values()]
    return tuple(
        sorted(
            some,
            key=lambda f: (
                f.path,
                f.cell,
                f.place.line,
                f.place.column,
                f.place.end_line,
                f.severity,
            ),
        )
    )


def _together(some: list[Finding]) -> Finding:
    """Return the most severe finding of a place, which names the issues of the others."""
    some.sort(key=lambda one: (ORDER[one.severity], not one.proved, not one.after, one.issue.slug))
    first = some[0]
    others = [issue for one in some[1:] for issue in (one.issue, *one.also)]
    also = {issue.slug: issue for issue in (*first.also, *others)}
    also.pop(first.issue.slug, None)
    fixed = next((one for one in some if one.replacement is not None), None)
    if fixed is not None and first.replacement is None:
        first = replace(
            first, after=fixed.after, proved=fixed.proved, replacement=fixed.replacement
        )
    return replace(first, also=tuple(also.values()))
