"""Known issues by implementation and version: how severe, on how many processes, how usual.

An issue is a cause. What it does in a version is the gravest effect of the cells that show it
there: a hazard by itself, or a change against the legacy pmap's newest release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from reports.effects.digest import RAISED
from reports.effects.effect import Effect
from reports.effects.pairs import RAN, Effects, Side
from reports.effects.rewrites import Usage, rewrites, weight
from reports.reading.outcomes import CellKey
from reports.reading.records import JAX, Cause
from reports.reading.results import Results
from reports.site.causes import shown_by
from reports.site.columns import columns
from reports.site.names import cause_path
from reports.site.strips import jax_versions
from reports.site.uses import Use

_NO_CHANGE = (Effect.SAME, Effect.REPAIRED, Effect.NOT_MEASURED)
_REAL = "idioms"  # the section of programs as users write them


class Where(NamedTuple):
    """An implementation in one JAX."""

    implementation: str
    jax: str


@dataclass(slots=True)
class Spot:
    """What an issue does under an implementation in a version, and with how many processes."""

    effect: Effect
    one: bool = False
    several: bool = False

    @property
    def processes(self) -> str:
        """With how many processes it shows."""
        if self.one and self.several:
            return "one process and several"
        return "several processes only" if self.several else "one process"


@dataclass(slots=True)
class Issue:
    """A cause with what it does where."""

    cause: Cause
    usage: Usage
    library: str = ""
    spots: dict[Where, Spot] = field(default_factory=dict)
    ran: set[Where] = field(default_factory=set)

    @property
    def href(self) -> str:
        return cause_path(self.cause.cause)

    def at(self, implementation: str, jax: str) -> Spot | None:
        """What it does there; what maps nothing does it under every implementation."""
        spot = self.spots.get(Where(implementation, jax))
        return spot if spot is not None else self.spots.get(Where(JAX, jax))

    def was_run(self, implementation: str, jax: str) -> bool:
        """Whether a test that shows it elsewhere was run there."""
        return Where(implementation, jax) in self.ran or Where(JAX, jax) in self.ran

    def weight(self, implementations: Iterable[Where]) -> float:
        """Severity times likelihood where it is worst."""
        found = (self.at(*where) for where in implementations)
        return max((weight(one.effect, self.usage) for one in found if one), default=0.0)


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def issues(effects: Effects) -> tuple[Issue, ...]:
    """Every cause that any cell shows, in the catalogue's order."""
    results = effects.results
    column = next((one for one in columns(results) if one.baseline), None)
    baseline = None if column is None else column.side
    shown = shown_by(results)
    ran = _ran(results)
    found = []
    for slug, cells in shown.items():
        cause = results.causes.get(slug)
        if cause is not None:
            found.append(_issue(effects, baseline, cause, cells, ran))
    return tuple(found)


def usage_of(results: Results, cause: Cause, clauses: Iterable[str]) -> Usage:
    """How usual it is to meet a cause: as the table says, or by what its clauses are about."""
    known = rewrites().usages.get(cause.cause)
    if known is not None:
        return known
    for id in clauses:
        clause = results.clauses[id]
        claim = results.claims.get(clause.claim)
        if clause.section == _REAL or (claim is not None and not claim.silent):
            return Usage.COMMON
    return Usage.UNUSUAL


def _ran(results: Results) -> dict[str, set[Where]]:
    """Clause to where any of its cells was run."""
    found: dict[str, set[Where]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            found.setdefault(key.clause, set()).add(Where(key.implementation, key.target.jax or ""))
    return found


def _issue(
    effects: Effects,
    baseline: Side | None,
    cause: Cause,
    cells: Sequence[CellKey],
    ran: dict[str, set[Where]],
) -> Issue:
    clauses = dict.fromkeys(key.clause for key in cells)
    edit = rewrites().by_cause.get(cause.cause)
    one = Issue(cause, usage_of(effects.results, cause, clauses), edit.library if edit else "")
    for id in clauses:
        one.ran |= ran.get(id, set())
    counted: dict[Where, Counter[Effect]] = {}
    for key in cells:
        effect = effect_of(effects, baseline, cause, key)
        if effect is None:
            continue
        where = Where(key.implementation, key.target.jax or "")
        counted.setdefault(where, Counter())[effect] += 1
        spot = one.spots.get(where)
        if spot is None:
            spot = one.spots[where] = Spot(effect)
        spot.effect = min(spot.effect, effect, key=lambda some: some.gravity)
        if key.topology.startswith("1x"):
            spot.one = True
        else:
            spot.several = True
    return one


def effect_of(
    effects: Effects, baseline: Side | None, cause: Cause, key: CellKey
) -> Effect | None:
    """What a cell that shows a cause does to a program; None where that is nothing new."""
    hazards = effects.alone(key)
    if hazards:
        effect = min((one.effect for one in hazards), key=lambda some: some.gravity)
    else:
        felt = effects.from_baseline(key, baseline)
        digest = effects.digest_of(key)
        if felt is not None:
            effect = felt.effect
        elif digest is not None and any(
            step.outcome == RAISED and step.failed for _, step in digest.steps()
        ):
            effect = Effect.RAISES
        else:
            return None
    if effect in _NO_CHANGE:
        return None
    if cause.cause in rewrites().output_only and effect is Effect.WRONG_NUMBERS:
        return Effect.OTHER_OUTPUT
    return effect


@dataclass(frozen=True, slots=True)
class GridCell:
    """An issue in a version: what it does there, if anything."""

    jax: str
    effect: str
    css: str
    sign: str
    says: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """An issue, and what it does in each version for one use."""

    title: str
    href: str
    usage: Usage
    library: str
    worst: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The known issues of one use, the most severe and most usual first."""

    use: Use
    rows: tuple[GridRow, ...]
    more: int


def grid(effects: Effects, use: Use, most: int | None = None) -> Grid:
    """The grid of a use, at most `most` rows of it."""
    versions = jax_versions(effects.results)
    where = [Where(use.implementation(jax), jax) for jax in versions]
    weighed = [(one.weight(where), one) for one in issues(effects)]
    some = [(weight, one) for weight, one in weighed if weight > 0]
    some.sort(key=lambda pair: (-pair[0], pair[1].cause.part_of != "", pair[1].cause.title))
    # A part of a defect whose whole is listed is the same defect.
    listed = {one.cause.cause for _, one in some}
    wholes = [one for _, one in some if one.cause.part_of not in listed]
    shown = wholes if most is None else _of_different_edits(wholes)[:most]
    rows = tuple(_row(one, where) for one in shown)
    return Grid(use, rows, len(wholes) - len(rows))


def _of_different_edits(some: Sequence[Issue]) -> list[Issue]:
    """The first issue of each edit: a reader who makes it is done with the others."""
    edits = rewrites().by_cause
    found: dict[str, Issue] = {}
    for one in some:
        edit = edits.get(one.cause.cause)
        found.setdefault(one.cause.cause if edit is None else edit.title, one)
    return list(found.values())


def _row(one: Issue, where: Sequence[Where]) -> GridRow:
    spots = [one.at(*place) for place in where]
    effects = [spot.effect for spot in spots if spot is not None]
    worst = min(effects, key=lambda some: some.gravity)
    return GridRow(
        one.cause.title,
        one.href,
        one.usage,
        one.library,
        worst.value,
        tuple(_cell(one, place, spot) for place, spot in zip(where, spots, strict=True)),
    )


def _cell(one: Issue, where: Where, spot: Spot | None) -> GridCell:
    if spot is not None:
        says = f"{where.jax}: {spot.effect.words}, {spot.processes}"
        return GridCell(where.jax, spot.effect.words, spot.effect.css, "", says)
    if one.was_run(*where):
        return GridCell(where.jax, "no", "g-no", "✓", f"{where.jax}: not affected")
    return GridCell(where.jax, "not run", "g-none", "", f"{where.jax}: not tested")
