"""The pages of known issues: what JAX does, its program, and where it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from conformance.model.records import Cause
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.happened import ABSENT
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.remedies import Help
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.issues.derive import issue_of
from reports.analysis.issues.issue import Issue
from reports.analysis.issues.origin import Origin, origin
from reports.analysis.issues.places import jax_versions
from reports.analysis.issues.shown import shown_by
from reports.render.site import inside
from reports.render.site import issues as known_issues
from reports.render.site.marks import Mark, mark_of, together
from reports.render.site.names import (
    Link,
    cause_link,
    cause_path,
    clause_path,
    implementation_words,
)
from reports.render.site.page import Page
from reports.render.site.slower import slower
from reports.render.site.strips import (
    Place,
    Strip,
    marks_of_clauses,
    newest_index,
    ranges,
    versions,
    worst_strips,
)
from reports.render.site.upstream import Thread, threads_of
from reports.render.site.user_reports import reports_of
from reports.render.site.uses import defaults
from reports.store.order import (
    LEGACY,
    NEW,
    SHARD_MAP,
    implementation_order,
    topology_order,
    version_order,
)
from reports.store.outcomes import CellKey
from reports.store.results import Results
from reports.store.shown import place_shown

_MOST_REMEDIES = 4
_COSTS = (Effect.MOVES_MORE, Effect.NEEDS_MORE_MEMORY, Effect.SLOWER)


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation, and the versions and topologies in which it shows the issue."""

    implementation: str
    versions: str  # on any topology
    ranges: tuple[tuple[str, str], ...]  # topologies, versions


@dataclass(frozen=True, slots=True)
class Remedy:
    """A clause that shows a remedy, and whether it works."""

    clause: str
    title: str
    href: str
    newest: Mark | None
    strips: tuple[Strip, ...]
    says: str


@dataclass(frozen=True, slots=True)
class ClauseLink:
    """A clause that shows the issue: its expectation, and whether the newest JAX fulfils it."""

    clause: str
    title: str
    href: str
    newest: Mark
    silent: bool


@dataclass(frozen=True, slots=True)
class RelatedIssue:
    """Another known issue of the same defect, and its edit."""

    link: Link
    edit: str


@dataclass(frozen=True, slots=True)
class CauseView:
    """A known issue: its effect, where it shows, its cost, and its remedies.

    `edit` is what to change, if that works in the newest JAX; `related` are the issues of the same
    defect: the whole, or its parts; `as_shard_map` says how programs that show it under new pmap
    behave under shard_map. `jax` are the heads of `rows`: versions of JAX, or of the `library` that
    it depends on. `effects` are its effects, the worst first, each with the implementations whose
    worst it is; without them if there is one effect only. `hidden` says by which other issues its
    tests fail, and where; `answer` is a page that answers the question behind it. `origin` says
    what it is due to, `defaults` since when jax.pmap is new pmap, if that is in `rows`.
    """

    cause: Cause
    href: str
    effect: Effect | None
    origin: str
    places: tuple[PlaceRow, ...]
    clauses: tuple[ClauseLink, ...]
    helps: tuple[tuple[Help, tuple[Remedy, ...]], ...]
    versions: tuple[str, ...]
    newest: str
    edit: str = ""
    related: tuple[RelatedIssue, ...] = ()
    slower: tuple[str, ...] = ()
    as_shard_map: str = ""
    rows: tuple[known_issues.PlaceRow, ...] = ()
    jax: tuple[str, ...] = ()
    rewrite: Rewrite | None = None
    usage: str = ""
    libraries: tuple[tuple[str, str], ...] = ()
    library: str = ""
    hidden: tuple[tuple[str, Link], ...] = ()
    answer: Link | None = None
    defaults: str = ""
    effects: tuple[tuple[str, str], ...] = ()

    @property
    def absent(self) -> tuple[str, ...]:
        """The known issue's remedies that these results do not contain."""
        there = {one.clause for _, some in self.helps for one in some}
        return tuple(one for one in self.cause.remedies if one not in there)

    @property
    def reported(self) -> tuple[Link, ...]:
        """The user reports that it answers."""
        return reports_of(cause=self.cause.cause)

    @property
    def upstream(self) -> tuple[Thread, ...]:
        """The upstream issues and pull requests whose state is known."""
        return threads_of(self.cause.cause, self.cause.links)

    @property
    def links(self) -> tuple[str, ...]:
        """The other links."""
        known = {one.address for one in self.upstream}
        return tuple(link for link in self.cause.links if link not in known)

    @property
    def most_remedies(self) -> int:
        """Return how many remedies of one kind are shown unfolded."""
        return _MOST_REMEDIES

    @property
    def places_line(self) -> str:
        """Return where it shows, in a line."""
        return "; ".join(
            f"{implementation_words(row.implementation)} {row.versions}" for row in self.places
        )


def pages(effects: Effects) -> Iterator[Page]:
    """Yield a page per known issue."""
    results = effects.results
    found = issue_of(effects)
    for view in causes(effects):
        issue = found.get(view.cause.cause)
        rewrite = rewrites().by_cause.get(view.cause.cause)
        whole = replace(view, rewrite=rewrite, usage="" if issue is None else issue.usage.words)
        if issue is not None and issue.library:
            versions, rows = known_issues.library_rows(results, issue)
            whole = replace(
                whole,
                library=issue.library,
                rows=rows,
                jax=versions,
                libraries=tuple(library_versions(results, issue.library)),
            )
        elif issue is not None:
            rows = known_issues.place_rows(results, issue)
            hidden = known_issues.hidden_by(results, issue)
            whole = replace(
                whole,
                rows=rows,
                jax=tuple(jax_versions(results)),
                hidden=hidden,
                defaults=defaults(results)
                if any(one.implementation == NEW for one in rows)
                else "",
            )
        yield Page(view.href, "cause", whole, view.cause.title, view.cause.sentence)


def library_versions(results: Results, name: str) -> Iterator[tuple[str, str]]:
    """Yield each version of JAX with the versions of a library in its runs."""
    found: dict[str, set[str]] = {}
    for one in results.environments:
        if one.jax and name in one.packages:
            found.setdefault(one.jax, set()).add(one.packages[name])
    for jax in jax_versions(results):
        if jax in found:
            yield jax, ", ".join(sorted(found[jax], key=version_order))


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def causes(effects: Effects) -> tuple[CauseView, ...]:
    """Return every known issue of the results, including those that no cell shows."""
    results = effects.results
    shown = shown_by(results)
    marks = marks_of_clauses(results)
    newest = newest_index(results)
    views = [
        _view(effects, newest, marks, one, shown.get(one.cause, []))
        for one in results.causes.values()
    ]
    return tuple(
        sorted(
            views,
            key=lambda one: (
                one.cause.section,
                one.effect.rank if one.effect else len(Effect),
                one.cause.title,
            ),
        )
    )


def _view(
    effects: Effects,
    newest: int,
    marks: dict[str, dict[Place, list[Mark]]],
    cause: Cause,
    cells: list[CellKey],
) -> CauseView:
    results = effects.results
    issue = issue_of(effects).get(cause.cause)
    shown = Counter(key.implementation for key in cells if key.implementation != LEGACY)
    at = NEW if NEW in shown or not shown else shown.most_common(1)[0][0]
    target = results.targets[newest].key
    effect = None if issue is None else issue.worst
    return CauseView(
        cause=cause,
        href=cause_path(cause.cause),
        effect=effect,
        origin=_origin(results, cause, effect, cells),
        places=_places(effects, cells),
        clauses=tuple(
            _clause_link(results, newest, marks, id, names) for id, names in _showing(cells)
        ),
        helps=_helps(effects, newest, marks, cause, at),
        versions=versions(results),
        newest=versions(results)[newest],
        edit=effects.remedies.edit(cause, at, target),
        related=tuple(
            RelatedIssue(cause_link(results, one.cause), effects.remedies.edit(one, at, target))
            for one in results.causes.values()
            if one.cause == cause.part_of or (one.part_of == cause.cause and not cause.part_of)
        ),
        slower=slower(results, cells, target),
        answer=Link(inside.TITLE, inside.PAGE)
        if cause.cause in inside.CAUSES and inside.there(results)
        else None,
        as_shard_map=""
        if issue is None or issue.worst is None or SHARD_MAP in issue.implementations
        else _as_shard_map(results, [key for key in cells if key.target == target]),
        effects=() if issue is None else tuple(_effects(issue)),
    )


def _effects(issue: Issue) -> Iterator[tuple[str, str]]:
    worst = {name: issue.worst_under(name) for name in issue.implementations}
    found = sorted({one for one in worst.values() if one}, key=lambda one: one.rank)
    for effect in found:
        names = [implementation_words(name) for name, one in worst.items() if one is effect]
        yield effect.value, "" if len(found) == 1 else ", ".join(names)


def _origin(results: Results, cause: Cause, effect: Effect | None, cells: Iterable[CellKey]) -> str:
    """Return what an issue is due to, in words."""
    edit = rewrites().by_cause.get(cause.cause)
    if edit is not None and edit.library:
        return f"{edit.library}, from {edit.since} on"
    found = origin(results, cause, cells)
    if found is Origin.DOCUMENTATION and effect in _COSTS:
        return "JAX, whose documentation says something else"
    return found.value


def _as_shard_map(results: Results, cells: Iterable[CellKey]) -> str:
    """Return how the programs that fail by an issue under new pmap behave under shard_map of
    one JAX.
    """
    there = [
        key._replace(implementation=SHARD_MAP)
        for key in cells
        if key.implementation == NEW and mark_of(results.outcome(key).verdict) is not Mark.RIGHT
    ]
    ran = [
        mark_of(verdict) is Mark.RIGHT and _expected_alike(results, other.clause)
        for other in there
        if (verdict := results.outcome(other).verdict) not in ABSENT
    ]
    return f"{sum(ran)} of {len(ran)}" if any(ran) else ""


def _expected_alike(results: Results, clause: str) -> bool:
    """Return whether a test expects the same of new pmap and of shard_map: where shard_map is
    expected to fail as new pmap does, its result conforms and avoids nothing.
    """
    expected = results.clauses[clause].expected
    return expected.get(NEW) == expected.get(SHARD_MAP)


def _showing(cells: Iterable[CellKey]) -> list[tuple[str, frozenset[str]]]:
    """Return the clauses of cells, each with the implementations that show the issue there."""
    found: dict[str, set[str]] = {}
    for key in cells:
        found.setdefault(key.clause, set()).add(key.implementation)
    return [(id, frozenset(names)) for id, names in sorted(found.items())]


def _clause_link(
    results: Results,
    newest: int,
    marks: dict[str, dict[Place, list[Mark]]],
    id: str,
    names: frozenset[str],
) -> ClauseLink:
    clause = results.clauses[id]
    claim = results.claims.get(clause.claim)
    rows = marks[id].items()
    mark = together(row[newest] for (implementation, _), row in rows if implementation in names)
    return ClauseLink(id, clause.title, clause_path(id), mark, claim is not None and claim.silent)


def _places(effects: Effects, cells: list[CellKey]) -> tuple[PlaceRow, ...]:
    results = effects.results
    named = dict(zip((t.key for t in results.targets), versions(results), strict=True))
    shown: dict[str, dict[str, set[str]]] = {}
    for key in cells:
        by_topology = shown.setdefault(key.implementation, {})
        topology = place_shown(key.topology, effects.processes_of(key.clause, key.topology))
        by_topology.setdefault(topology, set()).add(named[key.target])
    order, found = tuple(named.values()), []
    for implementation in sorted(shown, key=implementation_order):
        by_range: dict[str, list[str]] = {}
        for topology in sorted(shown[implementation], key=topology_order):
            where = ranges(order, shown[implementation][topology])
            by_range.setdefault(where, []).append(topology)
        rows = tuple((", ".join(topologies), where) for where, topologies in by_range.items())
        anywhere = ranges(order, set().union(*shown[implementation].values()))
        found.append(PlaceRow(implementation, anywhere, rows))
    return tuple(found)


def _helps(
    effects: Effects,
    newest: int,
    marks: dict[str, dict[Place, list[Mark]]],
    cause: Cause,
    implementation: str,
) -> tuple[tuple[Help, tuple[Remedy, ...]], ...]:
    """Return the remedies by whether they work under an implementation of the newest JAX."""
    results = effects.results
    target = results.targets[newest].key
    found: dict[Help, list[Remedy]] = {help: [] for help in Help}
    for id in effects.remedies.of_cause(cause):
        how = effects.remedies.at(id, implementation, target)
        found[how.help].append(
            Remedy(
                id,
                how.title,
                clause_path(id),
                together(row[newest] for row in marks[id].values()),
                worst_strips(marks[id], versions(results)),
                f"{how.result} under {implementation_words(how.implementation)}",
            )
        )
    return tuple((help, tuple(some)) for help, some in found.items() if some)
