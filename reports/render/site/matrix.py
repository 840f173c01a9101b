"""The compatibility table: a page per section, three columns by default, every version on demand.

The columns are the last legacy pmap and the newest new pmap and shard_map. The colour is the effect
on code that moves from the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from conformance.model.records import Clause
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects, cell_of
from reports.render.site.columns import Column, columns
from reports.render.site.marks import Mark, mark_of
from reports.render.site.names import (
    cell_anchor,
    clause_path,
    matrix_path,
    safe_name,
    section_words,
)
from reports.render.site.page import Page
from reports.render.site.strips import Strip, marks_of_clauses, strip, versions
from reports.render.site.text import shortened

INDEX = "matrix.html"
_SENTENCE_SHOWN = 110
_LINES_ON_A_PAGE = 180  # about 250 KB: what a phone opens at once
_GROUP_PARTS = 2  # of an id, by which rows are grouped


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell: what happened, the effect relative to the baseline if there is one, the mark."""

    anchor: str
    mark: Mark
    words: str
    effect: Effect | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Line:
    """A clause on one topology: an entry per column, and a strip per implementation."""

    topology: str
    entries: tuple[Entry, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A clause, its lines, and its classes for filtering."""

    clause: Clause
    href: str
    lines: tuple[Line, ...]
    silent: bool  # no document speaks of it: its marks are about legacy pmap

    @property
    def css(self) -> str:
        """The classes by which the page's filters find it: changed, untrue, several, unmeasured."""
        entries = [entry for line in self.lines for entry in line.entries]
        found = {
            "changed": any(e.effect not in (None, Effect.SAME) for e in entries),
            "untrue": any(e.mark in (Mark.WRONG, Mark.PARTLY) for e in entries),
            "several": any(not line.topology.startswith("1x") for line in self.lines),
            "unmeasured": any(e.mark is Mark.NOT_RUN for e in entries),
        }
        return " ".join(name for name, holds in found.items() if holds)


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses whose ids begin alike, counted by their most severe effect in the second column."""

    name: str
    anchor: str
    rows: tuple[Row, ...]
    counted: tuple[tuple[Effect, int], ...]

    @property
    def css(self) -> str:
        """The classes of all of its rows."""
        return " ".join(sorted({word for row in self.rows for word in row.css.split()}))


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a section that a page holds, number `at` of `total`."""

    path: str
    at: int
    total: int
    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        """The number of its clauses."""
        return sum(len(group.rows) for group in self.groups)


@dataclass(frozen=True)
class Section:
    """The table of a section, on one page or, if it is large, on several."""

    name: str
    path: str
    columns: tuple[Column, ...]
    versions: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        """The number of its clauses."""
        return sum(len(group.rows) for group in self.groups)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The pages of the matrix, in the order of its groups."""
        some = tuple(_divided(self.groups))
        if len(some) < 2:
            return (Part(self.path, 1, 1, self.groups),)
        return tuple(
            Part(matrix_path(self.name, at), at, len(some), groups)
            for at, groups in enumerate(some, 1)
        )

    @property
    def counted(self) -> Counter[Effect]:
        """Clauses by their most severe effect in the second column."""
        return sum((Counter(dict(group.counted)) for group in self.groups), Counter())


@dataclass(frozen=True, slots=True)
class PartView:
    """A page of a section's table."""

    section: Section
    part: Part


@dataclass(frozen=True, slots=True)
class Index:
    """The sections; `effects` are those that occur in any of them."""

    sections: tuple[Section, ...]
    effects: tuple[Effect, ...]
    columns: tuple[Column, ...]


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the list of sections, and a page per section."""
    found = tuple(_sections(effects))
    effects_shown = {effect for section in found for effect in section.counted}
    yield Page(
        INDEX,
        "matrix",
        Index(found, tuple(e for e in Effect if e in effects_shown), columns(effects.results)),
        "Compatibility table",
        "Every test under every implementation, in every version of JAX and on every topology.",
    )
    for section in found:
        words = section_words(section.name)
        title = f"Compatibility table: {words}"
        says = f"Every test of {words}, by effect, version and topology."
        if len(section.parts) > 1:
            yield Page(section.path, "parts", section, title, says)
        for part in section.parts:
            part_words = f", part {part.at} of {part.total}" if part.total > 1 else ""
            yield Page(part.path, "section", PartView(section, part), f"{title}{part_words}", says)


def _sections(effects: Effects) -> Iterator[Section]:
    results = effects.results
    default = columns(results)
    marks, named = marks_of_clauses(results), versions(results)
    by_section: dict[str, list[Row]] = {}
    for clause in results.clauses.values():
        claim = results.claims.get(clause.claim)
        silent = claim is not None and claim.silent
        lines = tuple(
            Line(
                topology,
                tuple(_entry(effects, clause, topology, column, default) for column in default),
                tuple(
                    strip(implementation, topology, row, named, silent)
                    for (implementation, where), row in marks[clause.clause].items()
                    if where == topology
                ),
            )
            for topology in results.grid[clause.clause]
        )
        row = Row(clause, clause_path(clause.clause), lines, silent)
        by_section.setdefault(clause.section, []).append(row)
    for name, rows in by_section.items():
        rows.sort(key=lambda row: row.clause.clause)
        grouped = groupby(rows, key=lambda row: _group_of(row.clause.clause))
        groups = tuple(_group(words, tuple(some)) for words, some in grouped)
        yield Section(name, matrix_path(name), default, named, groups)


def _divided(groups: Iterable[Group]) -> Iterator[tuple[Group, ...]]:
    """Yield the groups that fit on a page; a larger group continues on the next page."""
    page: list[Group] = []
    room = _LINES_ON_A_PAGE
    for group in groups:
        rows = list(group.rows)
        while rows:
            taken = list(_fitting(rows, room))
            if not taken and page:
                yield tuple(page)
                page, room = [], _LINES_ON_A_PAGE
                continue
            taken = taken or rows[:1]
            page.append(_group(group.name, tuple(taken)))
            room -= sum(len(row.lines) for row in taken)
            rows = rows[len(taken) :]
    if page:
        yield tuple(page)


def _fitting(rows: list[Row], room: int) -> Iterator[Row]:
    """Yield the first of `rows` for which there is room."""
    for row in rows:
        room -= len(row.lines)
        if room < 0:
            return
        yield row


def _group(name: str, rows: tuple[Row, ...]) -> Group:
    counted = Counter(_most_severe(row) for row in rows)
    return Group(
        name, f"g-{safe_name(name)}", rows, tuple((e, counted[e]) for e in Effect if counted[e])
    )


def _group_of(clause: str) -> str:
    return ".".join(clause.split(".")[:_GROUP_PARTS])


def _most_severe(row: Row) -> Effect:
    """Return the most severe effect of moving to new pmap or, without one, to what was compared."""
    found = [
        entry.effect
        for line in row.lines
        for entry in line.entries[1:2]
        if entry.effect is not None
    ]
    return min(found, key=lambda effect: effect.rank, default=Effect.NOT_MEASURED)


def _entry(
    effects: Effects, clause: Clause, topology: str, column: Column, default: tuple[Column, ...]
) -> Entry:
    results = effects.results
    key = cell_of(results, clause.clause, topology, column.side)
    if key.implementation not in results.columns(clause.clause):
        return Entry("", Mark.NONE, "", None, "")
    outcome = results.outcome(key)
    found = effects.from_baseline(key, default[0].side if default[0].baseline else None)
    mark = mark_of(outcome.verdict)
    sentence = found.sentence if found else "" if mark is Mark.RIGHT else outcome.reason
    return Entry(
        anchor=cell_anchor(key.implementation, key.topology),
        mark=mark,
        words=effects.happened(key),
        effect=found.effect if found else None,
        sentence=shortened(sentence, _SENTENCE_SHOWN),
    )
