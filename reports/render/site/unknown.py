"""What these results do not show, so that absence is not taken for success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.model.codec import Part
from conformance.model.records import Cell, Claim, Target
from conformance.model.verdicts import Verdict
from reports.analysis.effects.pairs import Effects
from reports.render.site.names import claim_path, clause_path
from reports.render.site.page import Page
from reports.render.site.strips import versions
from reports.render.site.text import shortened
from reports.store.outcomes import RAN
from reports.store.results import Results
from reports.store.shown import why_not_run

PAGE = "unknown.html"
PLATFORMS = ("cpu", "cuda", "tpu")
_NOT_SAID = "tested on other topologies"
_REASON_SHOWN = 240
_CHECKS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Check:
    """A clause by its title."""

    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A claim without a clause."""

    claim: Claim
    href: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The reason why tests are not run on a topology, and how many, per topology."""

    reason: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotRun:
    """The reason why cells have no result, how many, in which versions, of which tests."""

    reason: str
    cells: int
    versions: tuple[str, ...]
    count: int
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class UnknownPage:
    """Everything that is unknown."""

    gaps: tuple[tuple[str, tuple[Gap, ...]], ...]
    never: tuple[Check, ...]
    never_count: int
    coverage: tuple[tuple[str, int, int], ...]  # topology, checks with a result, checks
    left_out: tuple[LeftOut, ...]
    not_run: tuple[NotRun, ...]
    platforms: tuple[str, ...]
    others: tuple[str, ...]
    unavailable: tuple[Target, ...]
    results: Results
    core: tuple[str, ...] = ()  # the versions of which the core tier alone was run
    absent: int = 0  # tests of the catalogue without a result, which have no page

    @property
    def unrecorded(self) -> tuple[int, int]:
        """How many observed results do not contain the warnings between the steps, of how many."""
        cells = [one.runs[-1].cell for one in self.results.outcomes.values() if one.runs]
        observed = [cell for cell in cells if cell.verdict in RAN]
        return sum(map(_says_nothing_between, observed)), len(observed)


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page, on every site."""
    results = effects.results
    yield Page(
        PAGE,
        "unknown",
        unknown_page(results, effects.every.platforms),
        "Coverage: what was not tested",
        "Claims without a test, topologies and platforms without results, missing results.",
    )


def unknown_page(results: Results, platforms: tuple[str, ...]) -> UnknownPage:
    """Return what has no clause, no topology, no platform or no result; `platforms` have one."""
    ran = results.ran()
    never = [id for id in results.clauses if id not in ran]
    return UnknownPage(
        gaps=_gaps(results),
        never=_checks(results, never),
        never_count=len(never),
        coverage=_coverage(results),
        left_out=_left_out(results),
        not_run=_not_run(results, ran),
        platforms=platforms,
        others=tuple(one for one in PLATFORMS if one not in platforms),
        unavailable=tuple(t for t in results.targets if t.unavailable),
        results=results,
        core=tuple(results.labels[t.key] for t in results.targets if t.core is not None),
        absent=results.absent,
    )


def _gaps(results: Results) -> tuple[tuple[str, tuple[Gap, ...]], ...]:
    found: dict[str, list[Gap]] = {}
    for claim in results.gaps():
        href = claim_path(claim)
        found.setdefault(claim.document_title, []).append(Gap(claim, href))
    return tuple((title, tuple(some)) for title, some in found.items())


def _coverage(results: Results) -> tuple[tuple[str, int, int], ...]:
    found: dict[str, set[str]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            found.setdefault(key.topology, set()).add(key.clause)
    return tuple((one, len(found.get(one, ())), len(results.clauses)) for one in results.topologies)


def _left_out(results: Results) -> tuple[LeftOut, ...]:
    """Return the reasons, those of the most tests first; the page of a test has its own."""
    found: dict[str, Counter[str]] = {}
    for id, clause in results.clauses.items():
        for topology in results.topologies:
            if topology not in results.grid[id]:
                reason = why_not_run(clause, topology) or _NOT_SAID
                found.setdefault(reason, Counter())[topology] += 1
    ordered = sorted(found, key=lambda reason: (-found[reason].total(), reason))
    topologies = results.topologies
    return tuple(LeftOut(one, tuple(found[one][t] for t in topologies)) for one in ordered)


def _not_run(results: Results, ran: set[str]) -> tuple[NotRun, ...]:
    """Return missing cells of clauses that ran elsewhere; clauses that ran nowhere are listed
    apart.
    """
    number = {target.key: i for i, target in enumerate(results.targets)}
    named = versions(results)
    cells: dict[str, int] = {}
    targets: dict[str, set[int]] = {}
    clauses: dict[str, dict[str, None]] = {}
    for key, outcome in results.cells():
        if outcome.verdict is Verdict.NOT_RUN and key.clause in ran:
            reason = shortened(" ".join(outcome.reason.split()), _REASON_SHOWN)
            cells[reason] = cells.get(reason, 0) + 1
            targets.setdefault(reason, set()).add(number[key.target])
            clauses.setdefault(reason, {})[key.clause] = None
    return tuple(
        NotRun(
            reason,
            cells[reason],
            tuple(named[i] for i in sorted(targets[reason])),
            len(clauses[reason]),
            _checks(results, list(clauses[reason])),
        )
        for reason in sorted(cells, key=lambda reason: (-cells[reason], reason))
    )


def _says_nothing_between(cell: Cell) -> bool:
    part = cell.observations
    if isinstance(part, Part):  # of a hundred thousand: they are not read as objects
        return b'"between"' not in part.text
    return all(seen.get("between") is None for seen in part)


def _checks(results: Results, ids: list[str]) -> tuple[Check, ...]:
    return tuple(_check(results, id) for id in ids[:_CHECKS_SHOWN])


def _check(results: Results, id: str) -> Check:
    return Check(results.clauses[id].title, clause_path(id))
