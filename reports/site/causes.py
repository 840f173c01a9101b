"""The page of causes: each what JAX does and a user feels, its program, and where it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.reading.order import implementation_order, topology_order
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Cause
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.names import Link, clause_link, safe_name
from reports.site.page import Page

PAGE = "causes.html"
LEGACY_PMAP = "legacy_pmap"


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation on a topology; for each target how many cells show the cause, and of it."""

    implementation: str
    topology: str
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CauseView:
    """A cause, where the results show it, the clauses that do, and what helps."""

    cause: Cause
    anchor: str
    places: tuple[PlaceRow, ...]
    clauses: tuple[Link, ...]
    remedies: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class CausesPage:
    """All causes, by section."""

    targets: tuple[str, ...]
    sections: tuple[tuple[str, tuple[CauseView, ...]], ...]


def pages(results: Results) -> Iterator[Page]:
    """The list of causes, where the results carry any."""
    if results.causes:
        yield Page(
            PAGE,
            "causes",
            causes_page(results),
            "Causes",
            "What JAX does and a user of pmap feels, each with a program of plain JAX.",
        )


def causes_page(results: Results) -> CausesPage:
    """Every cause that the results carry, those that no cell shows as well."""
    shown: dict[str, list[CellKey]] = {}
    for key, outcome in results.outcomes.items():
        for slug in _named(results, key, outcome):
            shown.setdefault(slug, []).append(key)
    ordered = sorted(results.causes.values(), key=lambda one: (one.section, one.cause))
    return CausesPage(
        targets=tuple(results.labels[t.key] for t in results.targets),
        sections=tuple(
            (section, tuple(_view(results, one, shown.get(one.cause, [])) for one in some))
            for section, some in groupby(ordered, key=lambda one: one.section)
        ),
    )


def anchor(slug: str) -> str:
    """Where a cause stands on the page."""
    return f"cause-{safe_name(slug)}"


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


def _view(results: Results, cause: Cause, cells: list[CellKey]) -> CauseView:
    places = sorted(
        {(key.implementation, key.topology) for key in cells},
        key=lambda one: (implementation_order(one[0]), topology_order(one[1])),
    )
    return CauseView(
        cause=cause,
        anchor=anchor(cause.cause),
        places=tuple(
            PlaceRow(
                implementation,
                topology,
                tuple(
                    sum(
                        (key.target, key.implementation, key.topology)
                        == (target.key, implementation, topology)
                        for key in cells
                    )
                    for target in results.targets
                ),
            )
            for implementation, topology in places
        ),
        clauses=tuple(clause_link(results, id) for id in sorted({key.clause for key in cells})),
        remedies=tuple(clause_link(results, id) for id in cause.remedies),
    )
