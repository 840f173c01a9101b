"""The page of silent failures and crashes, by version and implementation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.model.records import JAX
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.hazards import Danger, Hazard, Place, averts, joined, of_version
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.issues.derive import issue_of
from reports.analysis.issues.places import Where
from reports.analysis.issues.states import State
from reports.render.site.names import (
    Link,
    cause_path,
    clause_path,
    implementation_words,
    safe_name,
    version_path,
)
from reports.render.site.page import Page
from reports.render.site.strips import ranges
from reports.store.order import implementation_order, version_order
from reports.store.results import Results

PAGE = "hazards.html"
MOST_CLAUSES = 6

_EFFECT = {Danger.SECOND_CALL: "raises"}
_TITLES = {
    Danger.CRASHES: "Crashes",
    Danger.HANGS: "Hangs",
    Danger.WRONG_NUMBERS: "Wrong values",
    Danger.SECOND_CALL: "Works once, then fails",
}
_ENDED = {
    Danger.CRASHES: "no longer crashes",
    Danger.HANGS: "no longer hangs",
    Danger.WRONG_NUMBERS: "no wrong values any more",
    Danger.SECOND_CALL: "no longer so",
}
_SAYS = {
    Danger.CRASHES: "A process dies, and the job ends.",
    Danger.HANGS: "A process waits forever, and so do the processes that wait for it.",
    Danger.WRONG_NUMBERS: "A program returns wrong values, without an error or a warning.",
    Danger.SECOND_CALL: "The first call of a pmapped function works, and the next call raises.",
}


ABORTS = "SIGABRT"
NOWHERE = ("no", "")  # a cell of a row: ran without it, or did not run


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation; for each version the topologies that show it, or that it ran without."""

    implementation: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartView:
    """Another appearance of the same defect, and the versions that show it."""

    anchor: str
    effect: str
    cause: Link
    sentence: str
    where: str


@dataclass(frozen=True, slots=True)
class HazardView:
    """One hazard, where it shows, and its evidence.

    `rows` are its own; a part of the defect adds those of implementations that it has not.
    `where` says which versions show it, `signals` by which a process ends that its title does not
    name, `news` in which version it is new, `shown` are classes of the versions that have it or a
    part of it, for filtering, and `edit` is what averts it in the newest of them. Without one,
    `elsewhere` is what averts the known issue in other versions. `also` are the other hazards of
    the same known issue, with the versions that show them.
    """

    anchor: str
    effect: str
    title: str
    sentence: str
    example: str
    cause: Link | None
    rows: tuple[PlaceRow, ...]
    where: str
    signals: str
    clauses: tuple[Link, ...]
    more: int
    news: str
    shown: str
    edit: str
    elsewhere: str = ""
    also: tuple[PartView, ...] = ()
    parts: tuple[PartView, ...] = ()


@dataclass(frozen=True, slots=True)
class DangerView:
    """One kind of hazard."""

    anchor: str
    effect: str
    title: str
    says: str
    hazards: tuple[HazardView, ...]


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One JAX: how many hazards it has, and links to the new ones.

    `place` is its class, for filtering; `first`: none was measured before it.
    """

    jax: str
    href: str
    place: str
    count: int
    new: tuple[tuple[str, Link, str], ...]
    first: bool


@dataclass(frozen=True, slots=True)
class HazardsPage:
    """All hazards by kind; `versions` are the columns of the tables, the newest first."""

    versions: tuple[str, ...]
    lines: tuple[VersionLine, ...]
    dangers: tuple[DangerView, ...]


def pages(effects: Effects, some: Sequence[Hazard]) -> Iterator[Page]:
    """Yield the page, on every site: the absence of hazards is information too."""
    yield Page(
        PAGE,
        "hazards",
        hazards_page(effects, some),
        "Crashes, hangs and wrong values",
        "Crashes, hangs, wrong values and second calls that fail, by version.",
    )


def hazards_page(effects: Effects, some: Sequence[Hazard]) -> HazardsPage:
    """Return all of `some` by kind, those of the newest JAX first."""
    results = effects.results
    there = {t.jax for t in results.targets if t.jax and not t.unavailable}
    versions = tuple(sorted(there, key=version_order, reverse=True))
    now = set(map(hazard_anchor, of_version(some, versions[0]) if versions else ()))
    ordered = sorted(joined(some), key=lambda pair: hazard_anchor(pair[0]) not in now)
    views = {
        danger: tuple(
            _view(effects, one, parts, versions, _also(one, some))
            for one, parts in ordered
            if one.danger is danger
        )
        for danger in Danger
    }
    return HazardsPage(
        versions,
        tuple(_line(results, some, versions, jax) for jax in versions),
        tuple(
            DangerView(
                safe_name(danger.value.replace(" ", "-").replace(",", "")),
                _EFFECT.get(danger, danger.value),
                _TITLES[danger],
                _SAYS[danger],
                views[danger],
            )
            for danger in Danger
        ),
    )


def hazard_anchor(hazard: Hazard) -> str:
    """Return a hazard's anchor."""
    by = hazard.cause.cause if hazard.cause is not None else hazard.clause
    return safe_name(f"{hazard.danger.name.lower().replace('_', '-')}-{by}")


def title_of(results: Results, hazard: Hazard) -> str:
    """Return a hazard's title."""
    if hazard.cause is not None:
        return hazard.cause.title
    if hazard.why:
        return hazard.why.partition(". ")[0].rstrip(".")
    return results.clauses[hazard.clause].title.rstrip(".")


def _line(
    results: Results, some: Sequence[Hazard], versions: Sequence[str], jax: str
) -> VersionLine:
    new_here = (one for one in some if not _library(one) and jax in one.new_in(versions[::-1]))
    new = (
        (one, _under(some) + (", again" if word == "again" else ""))
        for one, _ in joined(new_here)
        for word, some in _new_or_again(one, versions, jax, one.new_in(versions[::-1])[jax])
    )
    return VersionLine(
        jax,
        version_path(jax),
        _place(versions, jax),
        len(joined(of_version(some, jax))),
        tuple(
            (_effect(one), Link(title_of(results, one), f"{PAGE}#{hazard_anchor(one)}"), under)
            for one, under in new
        ),
        jax == versions[-1],
    )


def _place(versions: Sequence[str], jax: str) -> str:
    """Return the class of a version: its position, counted from the newest."""
    return f"in-{versions.index(jax) + 1}"


def _under(implementations: Sequence[str]) -> str:
    *rest, last = map(implementation_words, implementations)
    return f"{', '.join(rest)} and {last}" if rest else last


def _effect(hazard: Hazard) -> str:
    return _EFFECT.get(hazard.danger, hazard.danger.value)


def _news(hazard: Hazard, rows: Iterable[PlaceRow], versions: Sequence[str]) -> str:
    """Return since when it exists, and whether its tests ran in the newest version without it."""
    if (edit := _library(hazard)) is not None:
        return (
            f"Depends on the version of {edit.library}, not of JAX: versions of JAX without the "
            f"issue ran with {edit.library} before {edit.since}"
        )
    new = [
        f"{_SINCE[word]} in JAX {jax} under {_under(some)}"
        for jax, implementations in hazard.new_in(versions[::-1]).items()
        for word, some in _new_or_again(hazard, versions, jax, implementations)
    ]
    tested = any(row.cells[0] for row in rows)
    still = any(of_version([hazard], versions[0]))
    ended = [f"{_ENDED[hazard.danger]} in JAX {versions[0]}"] if tested and not still else []
    text = "; ".join([*new, *ended])
    return text[:1].upper() + text[1:]


SAME_DEFECT = " (another issue of the same defect)"
_SINCE = {"new": "new", "again": "back"}


def _new_or_again(
    hazard: Hazard, versions: Sequence[str], jax: str, implementations: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the implementations for which it is new in a version, and those that had it before."""
    older = versions[versions.index(jax) + 1 :]
    had = {name for name in implementations if any(hazard.topologies(name, one) for one in older)}
    for word, some in (("new", set(implementations) - had), ("again", had)):
        if some:
            yield word, [name for name in implementations if name in some]


def _also(hazard: Hazard, some: Sequence[Hazard]) -> tuple[Hazard, ...]:
    """Return the other hazards of the same known issue."""
    return tuple(
        one
        for one in some
        if one is not hazard and one.cause is not None and one.cause is hazard.cause
    )


def _library(hazard: Hazard) -> Rewrite | None:
    """The change of a library that it follows, whichever the JAX; None where it is JAX's."""
    edit = rewrites().by_cause.get(hazard.cause.cause) if hazard.cause is not None else None
    return edit if edit is not None and edit.library else None


def _view(
    effects: Effects,
    hazard: Hazard,
    parts: Sequence[Hazard],
    versions: Sequence[str],
    also: Sequence[Hazard],
) -> HazardView:
    results = effects.results
    there = [jax for jax in versions if any(of_version([hazard], jax))]
    title = title_of(results, hazard)
    of_row = {name: one for one in reversed([hazard, *parts]) for name in one.implementations}
    rows = tuple(
        PlaceRow(
            implementation_words(implementation) + (SAME_DEFECT if one is not hazard else ""),
            tuple(_cell(effects, one, implementation, version) for version in versions),
        )
        for implementation, one in sorted(
            of_row.items(), key=lambda pair: implementation_order(pair[0])
        )
    )
    edit = averts(effects, hazard, there[0]) if there else ""
    anywhere = [jax for jax in versions if any(of_version([hazard, *parts], jax))]
    return HazardView(
        anchor=hazard_anchor(hazard),
        effect=_effect(hazard),
        title=title,
        sentence=hazard.cause.sentence
        if hazard.cause is not None
        else hazard.why.partition(". ")[2],
        example=hazard.sentence,
        cause=Link(hazard.cause.title, cause_path(hazard.cause.cause)) if hazard.cause else None,
        rows=rows,
        where=_of_library(hazard) or "; ".join(_where(rows, versions)),
        signals=", ".join(one for one in _signals(effects, hazard) if one not in title),
        clauses=tuple(Link(id, clause_path(id)) for id in hazard.clauses[:MOST_CLAUSES]),
        more=max(0, len(hazard.clauses) - MOST_CLAUSES),
        news=_news(hazard, rows, versions),
        shown=" ".join(_place(versions, jax) for jax in anywhere),
        edit=edit,
        elsewhere="" if edit or hazard.cause is None else hazard.cause.edit,
        also=tuple(_part(one, versions) for one in also),
        parts=tuple(_part(one, versions) for one in parts),
    )


def _of_library(hazard: Hazard) -> str:
    """Return which versions of a library show it, under what; empty where it is JAX's."""
    edit = _library(hazard)
    if edit is None:
        return ""
    names = ", ".join(implementation_words(name) for name in hazard.implementations if name != JAX)
    return f"{names}{names and ': '}{edit.library} {edit.since} and later"


def _signals(effects: Effects, hazard: Hazard) -> list[str]:
    """The signals that end a process; one that aborts beside another has lost it."""
    if hazard.danger is not Danger.CRASHES:
        return []
    digests = filter(None, map(effects.digest_of, hazard.shown))
    of_cells = [{*one.died.signals} for one in digests if one.died]
    return sorted(set[str]().union(*(one - {ABORTS} or one for one in of_cells)))


def _where(rows: Iterable[PlaceRow], versions: Sequence[str]) -> Iterator[str]:
    """Yield which of the versions where it was tested show it, under which implementations."""
    found: dict[str, list[str]] = {}
    for row in rows:
        cells = [*zip(versions[::-1], row.cells[::-1], strict=True)]
        tested = [version for version, cell in cells if cell]
        shown = [version for version, cell in cells if cell not in NOWHERE]
        if shown:
            where = "every version tested" if shown == tested else f"JAX {ranges(tested, shown)}"
            found.setdefault(where, []).append(row.implementation)
    for where, names in found.items():
        yield f"{', '.join(names)}: {where}"


def _part(hazard: Hazard, versions: Sequence[str]) -> PartView:
    assert hazard.cause is not None, "what is a part of a known issue is one"
    oldest_first = versions[::-1]
    where = (
        (name, {jax for jax in versions if hazard.topologies(name, jax)})
        for name in hazard.implementations
    )
    return PartView(
        hazard_anchor(hazard),
        _effect(hazard),
        Link(hazard.cause.title, cause_path(hazard.cause.cause)),
        hazard.cause.sentence,
        _of_library(hazard)
        or "; ".join(
            f"{implementation_words(name)}: JAX {ranges(oldest_first, some)}"
            for name, some in where
        ),
    )


def _cell(effects: Effects, hazard: Hazard, implementation: str, version: str) -> str:
    """Return the topologies that show it; "no" if its tests ran without it, empty if none ran."""
    found = hazard.topologies(implementation, version)
    if found:
        return ", ".join(found)
    issue = issue_of(effects).get(hazard.cause.cause) if hazard.cause is not None else None
    if issue is None:
        return "no" if Place(implementation, version) in hazard.ran else ""
    state = issue.found(Where(implementation, version))
    if state.effect is not None and _OF_EFFECT.get(state.effect) is hazard.danger:
        if state.of_others:
            return "as in the neighbouring versions" if state.between else f"as in {state.beside}"
        # What shows it there maps nothing, and has a row of its own.
        return "no" if Place(implementation, version) in hazard.ran else ""
    return "" if state.state in (State.NOT_TESTED, State.REMOVED) else "no"


_OF_EFFECT = {
    Effect.CRASHES: Danger.CRASHES,
    Effect.HANGS: Danger.HANGS,
    Effect.WRONG_NUMBERS: Danger.WRONG_NUMBERS,
}
