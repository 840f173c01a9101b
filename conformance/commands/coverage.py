"""`coverage [RESULTS…]`: what nothing tests: claims without clause, clauses without run or cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance.catalogue.claims import Claim, Claims
from conformance.catalogue.loading import Catalogue
from conformance.commandline.counting import counted
from conformance.commands.entries import Entries
from conformance.judging.deviations import Deviation
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Clause
from conformance.spec.expectation import NotApplicable
from conformance.spec.releases import ByRelease, numbers
from conformance.store.recorded import UNJUDGED, cells, no_cell

MOST_LISTED = 20  # lines under one heading, unless all are asked for


@dataclass(frozen=True, slots=True)
class Idle:
    """An entry that excused no cell, and the versions in which a cell that it covers was judged."""

    entry: Deviation
    jax: tuple[str, ...]


@dataclass(slots=True)
class Coverage:
    """What was not exercised; all but `gaps` needs results.

    `never_run` maps a clause to its topologies without any cell, all of them if the clause was not
    run at all; `unjudged` maps it to the implementations that it expects something of and that have
    no judged cell; `releases` names the side of an expectation by release that no JAX of the
    results is on.
    """

    gaps: tuple[Claim, ...]
    results: bool
    jax: tuple[str, ...] = ()
    clauses: int = 0
    never_run: dict[str, tuple[str, ...]] = field(default_factory=dict)
    other_topologies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unjudged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    releases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    idle: tuple[Idle, ...] = ()
    unasked: int = 0
    gone: int = 0


def coverage(
    catalogue: Catalogue, claims: Claims, deviations: Sequence[Deviation], files: Sequence[Path]
) -> Coverage:
    """Return what these results do not exercise; ResultsError if they have no cell."""
    clauses = {id: one for id, one in catalogue.clauses.items() if one.timing is None}
    checked = {one.claim for one in clauses.values()}
    gaps = tuple(one for slug, one in claims.claims.items() if slug not in checked)
    found = Coverage(gaps, bool(files), clauses=len(clauses))
    if files:
        _recorded(found, clauses, deviations, files)
    return found


def _recorded(
    found: Coverage,
    clauses: Mapping[str, Clause],
    deviations: Sequence[Deviation],
    files: Sequence[Path],
) -> None:
    ran: dict[str, set[str]] = {name: set() for name in clauses}
    judged: dict[tuple[str, str], set[str]] = {}
    # By position: an entry cannot be a key, and the places of two can read alike.
    at = {id(entry): number for number, entry in enumerate(deviations)}
    excused: set[int] = set()
    asked: dict[int, set[str]] = {}
    versions: set[str] = set()
    gone: set[str] = set()
    about = Entries(deviations)
    for cell, target in cells(files):
        if cell.clause not in clauses:
            gone.add(cell.clause)
            continue
        if cell.verdict != Verdict.NOT_RUN:
            ran[cell.clause].add(cell.topology)
        if cell.verdict in UNJUDGED:
            continue
        jax = target.jax or ""
        versions.add(jax)
        judged.setdefault((cell.clause, cell.implementation), set()).add(jax)
        for entry in about.about(cell, target):
            asked.setdefault(at[id(entry)], set()).add(jax)
            if cell.verdict == Verdict.KNOWN_DEVIATION or entry.warns is not None:
                excused.add(at[id(entry)])
    if not any(ran.values()):
        raise no_cell(files)
    found.jax, found.gone = _sorted(versions), len(gone)
    for one in clauses.values():
        _add_clause(found, one, ran[one.id], judged)
    idle = sorted(asked.keys() - excused)
    found.idle = tuple(Idle(deviations[number], _sorted(asked[number])) for number in idle)
    found.unasked = len(deviations) - len(asked)


def _add_clause(
    found: Coverage,
    clause: Clause,
    ran: Collection[str],
    judged: Mapping[tuple[str, str], set[str]],
) -> None:
    """Add what of a clause was not run, not judged, or not in the releases that it names."""
    missing = tuple(t for t in clause.topologies if t not in ran)
    if not ran:
        found.never_run[clause.id] = missing
        return
    if missing:
        found.other_topologies[clause.id] = missing
    expected = {i for i, e in clause.expect.items() if not isinstance(e, NotApplicable)}
    unjudged = tuple(i for i in names.COLUMNS if i in expected and (clause.id, i) not in judged)
    if unjudged:
        found.unjudged[clause.id] = unjudged
    sides = tuple(_unreached(clause, {i: judged.get((clause.id, i), set()) for i in expected}))
    if sides:
        found.releases[clause.id] = sides


def _unreached(clause: Clause, judged: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield descriptions of the sides of expectations by release that no judged cell is on."""
    for implementation, versions in judged.items():
        for one in _by_release(clause.expect[implementation]):
            old = {numbers(version) < numbers(one.release) for version in versions}
            for side, words in ((True, "before"), (False, "since")):
                if versions and side not in old:
                    yield f"{implementation} {words} {one.release}"


def _by_release(expectation: Any) -> Iterator[ByRelease]:
    """Yield the expectations by release within an expectation."""
    if isinstance(expectation, ByRelease):
        yield expectation
    if is_dataclass(expectation):
        for one in fields(expectation):
            value = getattr(expectation, one.name)
            for part in value if isinstance(value, tuple) else (value,):
                if is_dataclass(part):
                    yield from _by_release(part)


def _sorted(versions: set[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=Version))


def lines(found: Coverage, *, everything: bool = False) -> Iterator[str]:
    """Yield what was not exercised, under headings by kind; long lists are cut."""
    yield from _list(
        f"{counted(len(found.gaps), 'claim')} without a clause",
        [f"{one.ref:<4} {one.slug}: {one.statement}" for one in found.gaps],
        everything=True,
    )
    if not found.results:
        return
    for title, some in (
        ("clauses never run", found.never_run),
        ("clauses not run on each of their topologies", found.other_topologies),
        ("clauses of which an implementation was judged in no cell", found.unjudged),
        ("clauses that expect something else of a release that was not run", found.releases),
    ):
        sections = Counter(id.partition(".")[0] for id in some)
        by_section = ", ".join(f"{section} {count}" for section, count in sorted(sections.items()))
        yield from _list(
            f"{len(some)} {title}" + (f" ({by_section})" if by_section else ""),
            [f"{id}: {', '.join(what)}" for id, what in some.items()],
            everything,
        )
    idle = counted(len(found.idle), "deviation entry", "deviation entries")
    yield from _list(
        f"{idle} that excused no cell, though one was judged",
        [
            f"{one.entry.where}: {', '.join(one.entry.clause)} under "
            f"{', '.join(one.entry.implementation)}, on jax {', '.join(one.jax)}"
            for one in found.idle
        ],
        everything,
    )
    yield f"{counted(found.clauses, 'clause')}, on jax {', '.join(found.jax) or 'none'}"
    if found.unasked:
        entries = counted(found.unasked, "deviation entry is", "deviation entries are")
        yield f"{entries} about cells that were not judged here"
    if found.gone:
        ends = "recorded clause no longer exists", "recorded clauses no longer exist"
        yield counted(found.gone, *ends)


def _list(title: str, lines: Sequence[str], everything: bool) -> Iterator[str]:
    yield f"{title}:" if lines else title
    shown = lines if everything else lines[:MOST_LISTED]
    for one in shown:
        yield f"  {one}"
    if len(shown) < len(lines):
        yield f"  and {len(lines) - len(shown)} more (--all lists them)"


def record(found: Coverage) -> dict[str, Any]:
    """Return everything as JSON."""
    gaps = [{"ref": one.ref, "claim": one.slug, "statement": one.statement} for one in found.gaps]
    if not found.results:
        return {"claims_without_clause": gaps}
    return {
        "claims_without_clause": gaps,
        "jax": list(found.jax),
        "clauses": found.clauses,
        "never_run": {id: list(what) for id, what in found.never_run.items()},
        "topologies_never_run": {id: list(what) for id, what in found.other_topologies.items()},
        "never_judged": {id: list(what) for id, what in found.unjudged.items()},
        "releases_never_judged": {id: list(what) for id, what in found.releases.items()},
        "idle_entries": [
            {
                "entry": one.entry.where,
                "clause": list(one.entry.clause),
                "implementation": list(one.entry.implementation),
                "jax": list(one.jax),
            }
            for one in found.idle
        ],
        "entries_not_asked": found.unasked,
    }
