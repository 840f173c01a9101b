"""The causes: each what JAX does and a user feels, with its program and where it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.effects.effect import Effect
from reports.effects.pairs import Effects
from reports.reading.order import implementation_order, topology_order
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Cause
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.columns import Column, columns
from reports.site.marks import Mark, together
from reports.site.names import cause_path, clause_path
from reports.site.page import Page
from reports.site.strips import (
    Place,
    Strip,
    marks_of_clauses,
    newest_index,
    ranges,
    versions,
    worst_strips,
)

PAGE = "causes.html"
LEGACY_PMAP = "legacy_pmap"
_LOOKED_AT = 12  # cells of the newest version whose effect says what a cause does


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation, and on which topologies in which versions it shows the cause."""

    implementation: str
    ranges: tuple[tuple[str, str], ...]  # topologies, versions


@dataclass(frozen=True, slots=True)
class Remedy:
    """A clause that shows what helps, and whether it does."""

    clause: str
    title: str
    href: str
    newest: Mark | None
    strips: tuple[Strip, ...]


@dataclass(frozen=True, slots=True)
class ClauseLink:
    """A clause that shows the cause."""

    clause: str
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class CauseView:
    """A cause, what it does to the reader's code, where it shows, and what helps."""

    cause: Cause
    href: str
    effect: Effect | None
    places: tuple[PlaceRow, ...]
    clauses: tuple[ClauseLink, ...]
    remedies: tuple[Remedy, ...]
    versions: tuple[str, ...]
    newest: str

    @property
    def said(self) -> str:
        """Where it shows, in a line of a list."""
        return "; ".join(
            f"{row.implementation.replace('_pmap', ' pmap')} {row.ranges[0][1]}"
            for row in self.places
        )


@dataclass(frozen=True, slots=True)
class Index:
    """All causes, by section, the gravest first."""

    sections: tuple[tuple[str, tuple[CauseView, ...]], ...]
    size: int


def pages(effects: Effects) -> Iterator[Page]:
    """The list of causes, where the results carry any, and a page per cause."""
    results = effects.results
    if not results.causes:
        return
    views = causes(effects)
    by_section = groupby(views, key=lambda one: one.cause.section)
    yield Page(
        PAGE,
        "causes",
        Index(tuple((section, tuple(some)) for section, some in by_section), len(views)),
        "Causes",
        "What JAX does and a user of pmap feels, each with a program of plain JAX that shows it.",
    )
    for view in views:
        yield Page(view.href, "cause", view, view.cause.title, view.cause.sentence)


def causes(effects: Effects) -> tuple[CauseView, ...]:
    """Every cause that the results carry, those that no cell shows as well."""
    results = effects.results
    shown: dict[str, list[CellKey]] = {}
    for key, outcome in results.outcomes.items():
        for slug in _named(results, key, outcome):
            shown.setdefault(slug, []).append(key)
    marks = marks_of_clauses(results)
    baseline = next((one for one in columns(results) if one.baseline), None)
    newest = newest_index(results)
    views = [
        _view(effects, baseline, newest, marks, one, shown.get(one.cause, []))
        for one in results.causes.values()
    ]
    return tuple(
        sorted(
            views,
            key=lambda one: (
                one.cause.section,
                one.effect.gravity if one.effect else len(Effect),
                one.cause.title,
            ),
        )
    )


def _named(results: Results, key: CellKey, outcome: Outcome) -> set[str]:
    """The causes that a cell shows: its entry's, or, where that conforms, its clause's.

    The clause's is about what changes: where the same is expected as of legacy pmap, nothing does.
    """
    if outcome.verdict is Verdict.CONFORMS:
        clause = results.clauses[key.clause]
        as_legacy = clause.expected.get(key.implementation) == clause.expected.get(LEGACY_PMAP)
        return set() if as_legacy else {clause.cause} - {""}
    entries = [run.cell.deviation for run in outcome.runs]
    return {entry.cause for entry in entries if entry is not None} - {""}


def _view(
    effects: Effects,
    baseline: Column | None,
    newest: int,
    marks: dict[str, dict[Place, list[Mark]]],
    cause: Cause,
    cells: list[CellKey],
) -> CauseView:
    results = effects.results
    return CauseView(
        cause=cause,
        href=cause_path(cause.cause),
        effect=_effect(effects, baseline, cells),
        places=_places(results, cells),
        clauses=tuple(
            ClauseLink(id, results.clauses[id].title, clause_path(id))
            for id in sorted({key.clause for key in cells})
        ),
        remedies=tuple(_remedy(results, newest, marks, id) for id in cause.remedies),
        versions=versions(results),
        newest=versions(results)[newest],
    )


def _effect(effects: Effects, baseline: Column | None, cells: list[CellKey]) -> Effect | None:
    """What most cells of the newest version that shows it feel against legacy pmap."""
    if baseline is None:
        return None
    number = {target.key: i for i, target in enumerate(effects.results.targets)}
    moved = [key for key in cells if key.implementation != baseline.side.implementation]
    newest = max((number[key.target] for key in moved), default=0)
    counted: Counter[Effect] = Counter()
    for key in [key for key in moved if number[key.target] == newest][:_LOOKED_AT]:
        found = effects.from_baseline(key, baseline.side)
        if found is not None and found.effect is not Effect.SAME:
            counted[found.effect] += 1
    return min(counted, key=lambda effect: (-counted[effect], effect.gravity), default=None)


def _places(results: Results, cells: list[CellKey]) -> tuple[PlaceRow, ...]:
    named = dict(zip((t.key for t in results.targets), versions(results), strict=True))
    held: dict[str, dict[str, set[str]]] = {}
    for key in cells:
        by_topology = held.setdefault(key.implementation, {})
        by_topology.setdefault(key.topology, set()).add(named[key.target])
    found = []
    for implementation in sorted(held, key=implementation_order):
        by_range: dict[str, list[str]] = {}
        for topology in sorted(held[implementation], key=topology_order):
            where = ranges(tuple(named.values()), held[implementation][topology])
            by_range.setdefault(where, []).append(topology)
        rows = tuple((", ".join(topologies), where) for where, topologies in by_range.items())
        found.append(PlaceRow(implementation, rows))
    return tuple(found)


def _remedy(
    results: Results, newest: int, marks: dict[str, dict[Place, list[Mark]]], clause: str
) -> Remedy:
    if clause not in results.clauses:
        return Remedy(clause, "", "", None, ())
    rows = marks[clause]
    return Remedy(
        clause,
        results.clauses[clause].title,
        clause_path(clause),
        together(row[newest] for row in rows.values()),
        worst_strips(rows, versions(results)),
    )
