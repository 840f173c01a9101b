"""The page of hazards: what may go wrong without a word, by version and implementation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.effects.hazards import Danger, Hazard, Place, hazards
from reports.effects.pairs import Effects
from reports.reading.order import version_order
from reports.reading.results import Results
from reports.site.names import Link, cause_path, clause_path, implementation_words, safe_name
from reports.site.page import Page

PAGE = "hazards.html"
MOST_CLAUSES = 6

_EFFECT = {Danger.SECOND_CALL: "raises"}
_SAYS = {
    Danger.CRASHES: "A process dies, and takes the others with it.",
    Danger.HANGS: "A process waits for ever; so do all that wait for it.",
    Danger.WRONG_NUMBERS: "Other numbers than the program means, without an error or a warning.",
    Danger.SECOND_CALL: "The first call works, and the next one of the same map raises.",
}


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation; of each version the topologies that show it, or that it ran without."""

    implementation: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HazardView:
    """One hazard, where it shows, and where its evidence is."""

    anchor: str
    effect: str
    title: str
    sentence: str
    example: str
    cause: Link | None
    rows: tuple[PlaceRow, ...]
    clauses: tuple[Link, ...]
    more: int


@dataclass(frozen=True, slots=True)
class DangerView:
    """One kind of hazard."""

    anchor: str
    effect: str
    title: str
    says: str
    hazards: tuple[HazardView, ...]


@dataclass(frozen=True, slots=True)
class HazardsPage:
    """All hazards by kind; `versions` are the columns of the tables."""

    versions: tuple[str, ...]
    dangers: tuple[DangerView, ...]


def pages(effects: Effects) -> Iterator[Page]:
    """The page, in every site: that there is no hazard is worth saying too."""
    yield Page(
        PAGE,
        "hazards",
        hazards_page(effects.results, hazards(effects)),
        "Hazards",
        "Crashes, hangs, silently wrong numbers and second calls that fail, by version.",
    )


def hazards_page(results: Results, some: Sequence[Hazard]) -> HazardsPage:
    """All of `some` by kind."""
    versions = tuple(
        sorted({t.jax for t in results.targets if t.jax and not t.unavailable}, key=version_order)
    )
    views = {
        danger: tuple(_view(results, one, versions) for one in some if one.danger is danger)
        for danger in Danger
    }
    return HazardsPage(
        versions,
        tuple(
            DangerView(
                safe_name(danger.value.replace(" ", "-").replace(",", "")),
                _EFFECT.get(danger, danger.value),
                danger.value[:1].upper() + danger.value[1:],
                _SAYS[danger],
                views[danger],
            )
            for danger in Danger
        ),
    )


def hazard_anchor(one: Hazard) -> str:
    """Where a hazard stands on the page."""
    by = one.cause.cause if one.cause is not None else one.clause
    return safe_name(f"{one.danger.name.lower().replace('_', '-')}-{by}")


def title_of(results: Results, one: Hazard) -> str:
    """What a hazard is, in words."""
    if one.cause is not None:
        return one.cause.title
    if one.why:
        return one.why.partition(". ")[0].rstrip(".")
    return results.clauses[one.clause].title.rstrip(".")


def _view(results: Results, one: Hazard, versions: Sequence[str]) -> HazardView:
    return HazardView(
        anchor=hazard_anchor(one),
        effect=_EFFECT.get(one.danger, one.danger.value),
        title=title_of(results, one),
        sentence=one.cause.sentence if one.cause is not None else one.why.partition(". ")[2],
        example=one.sentence,
        cause=Link(one.cause.title, cause_path(one.cause.cause)) if one.cause else None,
        rows=tuple(
            PlaceRow(
                implementation_words(implementation),
                tuple(_cell(one, implementation, version) for version in versions),
            )
            for implementation in one.implementations
        ),
        clauses=tuple(Link(id, clause_path(id)) for id in one.clauses[:MOST_CLAUSES]),
        more=max(0, len(one.clauses) - MOST_CLAUSES),
    )


def _cell(one: Hazard, implementation: str, version: str) -> str:
    """The topologies that show it; "no" where it ran without, nothing where it was not run."""
    found = one.topologies(implementation, version)
    if found:
        return ", ".join(found)
    return "no" if Place(implementation, version) in one.ran else ""
