"""Known issues by implementation and version: severity, number of processes, frequency.

What an issue does in a version is derived in `reports.analysis.issues`, once for all pages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Usage, rewrites
from reports.analysis.issues.derive import issues
from reports.analysis.issues.issue import Issue
from reports.analysis.issues.libraries import by_library
from reports.analysis.issues.places import KINDS, ONE, SEVERAL, Where, existing, jax_versions
from reports.analysis.issues.states import Found, State
from reports.render.site.names import Link, cause_path
from reports.render.site.strips import ranges
from reports.render.site.uses import Use
from reports.store.order import implementation_order
from reports.store.results import Results

_CSS = {
    State.SAME: "g-same",
    State.OTHERWISE: "g-other",
    State.FREE: "g-no",
    State.NOT_TESTED: "g-none",
    State.REMOVED: "g-none",
}
_SAYS_NOTHING = (State.OTHERWISE, State.NOT_TESTED, State.REMOVED)  # of an issue that never shows
_PROCESSES = {ONE: "one process", SEVERAL: "several processes"}
DOCUMENTATION = "documentation"  # the kind of an issue of which the documents say something else
FATAL = frozenset((Effect.CRASHES, Effect.HANGS))
_BETWEEN = "few tests ran: assumed from the versions around it"
_BESIDE = "few tests ran: assumed from JAX {}"


@dataclass(frozen=True, slots=True)
class GridCell:
    """An issue in a version: its effect there, if any."""

    jax: str
    says: str
    css: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """An issue, and its effect in each version for one use.

    `documented`: JAX's documents say something else, which need not be a defect of JAX.
    """

    title: str
    href: str
    usage: Usage
    worst: str
    cells: tuple[GridCell, ...]
    documented: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """The known issues of one use, the most severe and most common first."""

    use: Use
    rows: tuple[GridRow, ...]
    more: int


def grid(
    effects: Effects, use: Use, most: int | None = None, only: Collection[Effect] = ()
) -> Grid:
    """Return the grid of a use, with at most `most` rows; without what is a library's.

    `only`: the issues that have one of these effects in any version.
    """
    versions = jax_versions(effects.results)
    where = [Where(use.implementation(jax), jax) for jax in versions]
    there = existing(effects.results)
    own = (one for one in issues(effects) if not one.library)
    weighed = [(one.weight(there.intersection(where)), one) for one in own]
    some = [
        (weight, one)
        for weight, one in weighed
        if weight > 0 and (not only or any(one.at(place) in only for place in where))
    ]
    some.sort(key=lambda pair: (-pair[0], pair[1].cause.part_of != "", pair[1].cause.title))
    # A part of a defect whose whole is listed is the same defect.
    listed = {one.cause.cause for _, one in some}
    wholes = [one for _, one in some if one.cause.part_of not in listed]
    shown = wholes if most is None else _of_different_edits(wholes)[:most]
    rows = tuple(_row(one, where, there) for one in shown)
    return Grid(use, rows, len(wholes) - len(rows))


def _of_different_edits(some: Sequence[Issue]) -> list[Issue]:
    """Return the first issue of each edit and effect: one edit averts others of the effect too."""
    edits = rewrites().by_cause
    found: dict[tuple[str, Effect | None], Issue] = {}
    for one in some:
        edit = edits.get(one.cause.cause)
        key = one.cause.cause if edit is None else edit.title
        found.setdefault((key, one.worst), one)
    return list(found.values())


def _row(issue: Issue, where: Sequence[Where], there: frozenset[Where]) -> GridRow:
    found = [issue.at(place) for place in where if place in there]
    worst = min((effect for effect in found if effect), key=lambda some: some.rank)
    return GridRow(
        issue.cause.title,
        cause_path(issue.cause.cause),
        issue.usage,
        worst.value,
        tuple(cell(issue, place) for place in where),
        issue.cause.cause_kind == DOCUMENTATION,
    )


def cell(issue: Issue, where: Where, processes: str = "") -> GridCell:
    """Return what a table says of an issue in a place; how many tests raise, where it says with
    how many processes.
    """
    found = issue.found(where, processes)
    if found.effect is None:
        words = _state_words(found) if processes else found.state.value
        return GridCell(where.jax, _with_mark(words, found), _css(found))
    only = f" ({issue.processes(where)})" if not processes else ""
    return GridCell(where.jax, _with_mark(f"{found.effect.words}{only}", found), _css(found))


def _state_words(found: Found) -> str:
    """Return a state without an effect, and how many of its tests raise."""
    raising, tests = found.raising
    if not raising:
        return found.state.value
    some = "its tests" if raising == tests else f"{raising} of {tests} tests"
    if found.state is State.FREE:
        return f"{found.state.value} ({some} raise an expected error)"
    return f"{found.state.value} ({some} raise)"


def _css(found: Found) -> str:
    css = _CSS[found.state] if found.effect is None else found.effect.css
    return f"{css} g-carried" if found.of_others else css


def _with_mark(text: str, found: Found) -> str:
    """Return words, and that they are taken over from other versions."""
    if not found.of_others:
        return text
    return f"{text}; {_BETWEEN if found.between else _BESIDE.format(found.beside)}"


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation with one process or several; a cell per version."""

    implementation: str
    processes: str
    cells: tuple[GridCell, ...]


def place_rows(results: Results, issue: Issue) -> tuple[PlaceRow, ...]:
    """Return an issue's effects, a row for each implementation and kind of topology of which
    anything is known.
    """
    versions = jax_versions(results)
    found = []
    for name in issue.implementations:
        for processes in KINDS:
            places = [Where(name, jax) for jax in versions]
            if any(issue.found(place, processes).state not in _SAYS_NOTHING for place in places):
                cells = tuple(cell(issue, place, processes) for place in places)
                found.append(PlaceRow(name, _PROCESSES[processes], cells))
    return tuple(found)


def library_rows(results: Results, issue: Issue) -> tuple[tuple[str, ...], tuple[PlaceRow, ...]]:
    """Return the versions of an issue's library, and rows with a cell for each."""
    versions, rows = by_library(results, issue)
    return versions, tuple(
        PlaceRow(
            name,
            _PROCESSES[kind],
            tuple(
                GridCell(
                    version,
                    found.effect.words if found.effect else found.state.value,
                    _css(found),
                )
                for version, found in row.items()
            ),
        )
        for (name, kind), row in sorted(rows.items(), key=_by_row)
    )


def _by_row(pair: tuple[tuple[str, str], object]) -> tuple[tuple[int, str], int]:
    (name, kind), _ = pair
    return implementation_order(name), KINDS.index(kind)


def hidden_by(results: Results, issue: Issue) -> tuple[tuple[str, Link], ...]:
    """Return by which other issues the tests of an issue fail, and in which versions."""
    where: dict[str, set[str]] = {}
    for row in issue.rows.values():
        for jax, found in row.items():
            for slug in found.by[:1]:
                where.setdefault(slug, set()).add(jax)
    versions = jax_versions(results)
    return tuple(
        (ranges(versions, some), Link(results.causes[slug].title, cause_path(slug)))
        for slug, some in where.items()
        if slug in results.causes
    )
