"""Known issues by implementation and version: severity, number of processes, frequency.

The effect of an issue in a version is the most severe effect of the cells that show it there:
dangerous by itself, or a change from the newest legacy pmap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from conformance.model.records import JAX, Cause
from conformance.model.verdicts import Verdict
from reports.analysis.effects.derive import WITHOUT_THE_FIX, of_job
from reports.analysis.effects.digest import RAISED
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import RAN, SHARD_MAP, Effects, Side, sides
from reports.analysis.effects.rewrites import Usage, rewrites, weight
from reports.render.site.columns import columns
from reports.render.site.names import cause_path
from reports.render.site.shown import shown_by
from reports.render.site.strips import jax_versions
from reports.render.site.uses import Use
from reports.store.order import implementation_order
from reports.store.outcomes import CellKey
from reports.store.results import Results

_NO_CHANGE = (Effect.SAME, Effect.REPAIRED, Effect.NOT_MEASURED)
_REAL = "idioms"  # the section of programs as users write them


_Program = tuple[str, str, str]  # clause, implementation, topology


class Where(NamedTuple):
    """An implementation in one JAX."""

    implementation: str
    jax: str


@dataclass(slots=True)
class Issue:
    """A known issue and its effects: the most severe with one process and with several, by
    place.
    """

    cause: Cause
    usage: Usage
    library: str = ""
    one: dict[Where, Effect] = field(default_factory=dict)
    several: dict[Where, Effect] = field(default_factory=dict)
    ran_one: set[Where] = field(default_factory=set)
    ran_several: set[Where] = field(default_factory=set)
    shown_one: set[Where] = field(default_factory=set)  # with or without an effect
    shown_several: set[Where] = field(default_factory=set)
    judged_one: set[Where] = field(default_factory=set)  # run, or not applicable
    judged_several: set[Where] = field(default_factory=set)
    otherwise_one: set[Where] = field(default_factory=set)
    otherwise_several: set[Where] = field(default_factory=set)

    @property
    def href(self) -> str:
        return cause_path(self.cause.cause)

    @property
    def implementations(self) -> tuple[str, ...]:
        """The implementations that show it anywhere."""
        found = {where.implementation for where in self.shown_one | self.shown_several}
        return tuple(sorted(found, key=implementation_order))

    def at(self, where: Where, processes: str = "") -> Effect | None:
        """Return its effect in a place; programs that map nothing count for every
        implementation.
        """
        some = {"one": (self.one,), "several": (self.several,)}
        found = [
            effects[place]
            for effects in some.get(processes, (self.one, self.several))
            for place in (where, Where(JAX, where.jax))
            if place in effects
        ]
        return min(found, key=lambda effect: effect.gravity, default=None)

    def was_run(self, where: Where, processes: str = "") -> bool:
        """Return whether a test that shows it elsewhere was run in a place."""
        some = {"one": (self.ran_one,), "several": (self.ran_several,)}
        ran = some.get(processes, (self.ran_one, self.ran_several))
        return any({where, Where(JAX, where.jax)} & places for places in ran)

    def was_shown(self, where: Where, processes: str = "") -> bool:
        """Return whether a test shows it in a place, with or without an effect."""
        some = {"one": (self.shown_one,), "several": (self.shown_several,)}
        found = some.get(processes, (self.shown_one, self.shown_several))
        return any({where, Where(JAX, where.jax)} & places for places in found)

    def was_judged(self, where: Where, processes: str) -> bool:
        """Return whether a test that shows it elsewhere was run in a place, or does not apply."""
        judged = self.judged_one if processes == "one" else self.judged_several
        return bool({where, Where(JAX, where.jax)} & judged)

    def fails_otherwise(self, where: Where, processes: str = "") -> bool:
        """Return whether most tests that show it elsewhere fail by another issue in a place."""
        some = {"one": (self.otherwise_one,), "several": (self.otherwise_several,)}
        found = some.get(processes, (self.otherwise_one, self.otherwise_several))
        return any(where in places for places in found)

    def processes(self, where: Where) -> str:
        """Return with how many processes it shows in a place."""
        if self.at(where, "one") is None:
            return "several processes only"
        return "one process and several" if self.at(where, "several") else "one process"

    def weight(self, implementations: Iterable[Where]) -> float:
        """Return severity times likelihood in its worst place."""
        found = (self.at(where) for where in implementations)
        return max((weight(effect, self.usage) for effect in found if effect), default=0.0)


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def issues(effects: Effects) -> tuple[Issue, ...]:
    """Return every known issue that any cell shows, in the catalogue's order."""
    results = effects.results
    column = next((one for one in columns(results) if one.baseline), None)
    baseline = None if column is None else column.side
    shown = shown_by(results)
    single = _Single(effects)
    ran, judged, verdicts = _ran(results, single), _judged(results, single), _verdicts(results)
    found = []
    for slug, cells in shown.items():
        cause = results.causes.get(slug)
        if cause is not None:
            found.append(_issue(effects, baseline, cause, cells, single, ran, judged, verdicts))
    return tuple(found)


def usage_of(results: Results, cause: Cause, clauses: Iterable[str]) -> Usage:
    """Return how common an issue is: by the table, or by the subject of its clauses."""
    known = rewrites().usages.get(cause.cause)
    if known is not None:
        return known
    for id in clauses:
        clause = results.clauses[id]
        claim = results.claims.get(clause.claim)
        if clause.section == _REAL or (claim is not None and not claim.silent):
            return Usage.COMMON
    return Usage.UNUSUAL


def _ran(results: Results, single: _Single) -> dict[str, tuple[set[Where], set[Where]]]:
    """Return for each clause where any of its cells ran, with one process and with several."""
    found: dict[str, tuple[set[Where], set[Where]]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            place = found.setdefault(key.clause, (set(), set()))[not single(key)]
            place.add(_where(key))
    return found


def _judged(results: Results, single: _Single) -> dict[tuple[str, bool], set[Where]]:
    """Return for each clause, with one process or not, where it was run or does not apply."""
    found: dict[tuple[str, bool], set[Where]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict is not Verdict.NOT_RUN:
            found.setdefault((key.clause, single(key)), set()).add(_where(key))
    return found


def _verdicts(results: Results) -> dict[_Program, list[tuple[CellKey, Verdict]]]:
    """Return for each program, in every version in which it ran, how it ended."""
    found: dict[_Program, list[tuple[CellKey, Verdict]]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            found.setdefault(_program(key), []).append((key, outcome.verdict))
    return found


def _otherwise(
    cells: Sequence[CellKey],
    single: _Single,
    verdicts: dict[_Program, list[tuple[CellKey, Verdict]]],
) -> Iterator[tuple[Where, bool]]:
    """Yield the places, with whether one process, in which most programs of an issue fail, and none
    by it. Of all programs: a version of the core tier ran only a few.
    """
    shown = {(_where(key), single(key)) for key in cells}
    programs = {_program(key): single(key) for key in cells}
    of = Counter((name, alone) for (_, name, _), alone in programs.items())
    failed: Counter[tuple[Where, bool]] = Counter()
    for program, alone in programs.items():
        for key, verdict in verdicts.get(program, ()):
            failed[_where(key), alone] += verdict is not Verdict.CONFORMS
    for (where, alone), count in failed.items():
        if (where, alone) not in shown and 2 * count > of[where.implementation, alone]:
            yield where, alone


def _program(key: CellKey) -> _Program:
    return key.clause, key.implementation, key.topology


def _where(key: CellKey) -> Where:
    return Where(key.implementation, key.target.jax or "")


class _Single:
    """Says whether a cell has one process; a plain program may start several by itself."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._jobs: dict[str, bool] = {}

    def __call__(self, key: CellKey) -> bool:
        return key.topology.startswith("1x") and not self._starts_several(key)

    def _starts_several(self, key: CellKey) -> bool:
        """Return whether the clause of a cell starts several processes."""
        if key.implementation != JAX:
            return False
        if key.clause not in self._jobs:
            digest = self._effects.digest_of(key)
            if digest is None:
                return False
            started = {step.name for _, step in digest.steps() if of_job(step.name)}
            self._jobs[key.clause] = len(started) > 1
        return self._jobs[key.clause]


def _issue(
    effects: Effects,
    baseline: Side | None,
    cause: Cause,
    cells: Sequence[CellKey],
    single: _Single,
    ran: dict[str, tuple[set[Where], set[Where]]],
    judged: dict[tuple[str, bool], set[Where]],
    verdicts: dict[_Program, list[tuple[CellKey, Verdict]]],
) -> Issue:
    clauses = dict.fromkeys(key.clause for key in cells)
    edit = rewrites().by_cause.get(cause.cause)
    one = Issue(cause, usage_of(effects.results, cause, clauses), edit.library if edit else "")
    for id in clauses:
        with_one, with_several = ran.get(id, (set(), set()))
        one.ran_one |= with_one
        one.ran_several |= with_several
    for key in cells:
        (one.shown_one if single(key) else one.shown_several).add(_where(key))
        effect = effect_of(effects, baseline, cause, key)
        if effect is not None:
            seen = one.one if single(key) else one.several
            where = _where(key)
            seen[where] = min(seen.get(where, effect), effect, key=lambda some: some.gravity)
    for id, alone in {(key.clause, single(key)) for key in cells}:
        places = one.judged_one if alone else one.judged_several
        places |= judged.get((id, alone), set())
    for where, alone in _otherwise(cells, single, verdicts):
        (one.otherwise_one if alone else one.otherwise_several).add(where)
    return one


def effect_of(effects: Effects, baseline: Side | None, cause: Cause, key: CellKey) -> Effect | None:
    """Return what a cell that shows an issue does to a program; None if that is nothing new."""
    hazards = effects.alone(key)
    if hazards:
        effect = min((one.effect for one in hazards), key=lambda some: some.gravity)
    else:
        felt = effects.from_baseline(key, baseline)
        digest = effects.digest_of(key)
        if felt is not None:
            effect = felt.effect
            if effect is Effect.WRONG_NUMBERS and key.implementation == SHARD_MAP:
                effect = Effect.LIES_ELSEWHERE  # an array of all processes' rows, as documented
        elif digest is not None and any(
            step.outcome == RAISED and step.name != WITHOUT_THE_FIX for _, step in digest.steps()
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
    """An issue in a version: its effect there, if any."""

    jax: str
    says: str
    css: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """An issue, and its effect in each version for one use."""

    title: str
    href: str
    usage: Usage
    library: str
    worst: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The known issues of one use, the most severe and most common first."""

    use: Use
    rows: tuple[GridRow, ...]
    more: int


def grid(effects: Effects, use: Use, most: int | None = None) -> Grid:
    """Return the grid of a use, with at most `most` rows."""
    versions = jax_versions(effects.results)
    where = [Where(use.implementation(jax), jax) for jax in versions]
    there, gone = existing(effects.results), removed(effects.results)
    weighed = [(one.weight(there.intersection(where)), one) for one in issues(effects)]
    some = [(weight, one) for weight, one in weighed if weight > 0]
    some.sort(key=lambda pair: (-pair[0], pair[1].cause.part_of != "", pair[1].cause.title))
    # A part of a defect whose whole is listed is the same defect.
    listed = {one.cause.cause for _, one in some}
    wholes = [one for _, one in some if one.cause.part_of not in listed]
    shown = wholes if most is None else _of_different_edits(wholes)[:most]
    rows = tuple(_row(one, where, there, gone) for one in shown)
    return Grid(use, rows, len(wholes) - len(rows))


def _of_different_edits(some: Sequence[Issue]) -> list[Issue]:
    """Return the first issue of each edit, because one edit averts the others too."""
    edits = rewrites().by_cause
    found: dict[str, Issue] = {}
    for one in some:
        edit = edits.get(one.cause.cause)
        found.setdefault(one.cause.cause if edit is None else edit.title, one)
    return list(found.values())


def existing(results: Results) -> frozenset[Where]:
    """Return the implementations that each version has."""
    return frozenset(Where(one.implementation, one.jax) for one in sides(results))


def removed(results: Results) -> frozenset[Where]:
    """Return the implementations that a version no longer has."""
    jax = {target.key: target.jax or "" for target in results.targets}
    return frozenset(
        Where(name, jax[target])
        for name, target, verdict in results.verdicts
        if verdict is Verdict.REMOVED
    )


def _row(
    one: Issue, where: Sequence[Where], there: frozenset[Where], gone: frozenset[Where]
) -> GridRow:
    found = [one.at(place) for place in where if place in there]
    worst = min((effect for effect in found if effect), key=lambda some: some.gravity)
    return GridRow(
        one.cause.title,
        one.href,
        one.usage,
        one.library,
        worst.value,
        tuple(_removed(place.jax) if place in gone else _cell(one, place) for place in where),
    )


def _cell(one: Issue, where: Where, processes: str = "") -> GridCell:
    effect = one.at(where, processes)
    if effect is not None:
        only = f" ({one.processes(where)})" if not processes else ""
        return GridCell(where.jax, f"{effect.words}{only}", effect.css)
    if one.was_shown(where, processes):
        return GridCell(where.jax, "no new effect", "g-same")
    if one.fails_otherwise(where, processes):
        return GridCell(where.jax, "another issue", "g-other")
    if one.was_run(where, processes):
        return GridCell(where.jax, "not affected", "g-no")
    return GridCell(where.jax, "not run", "g-none")


def _removed(jax: str) -> GridCell:
    return GridCell(jax, "removed", "g-none")


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An implementation with one process or several; a cell per version."""

    implementation: str
    processes: str
    cells: tuple[GridCell, ...]


def place_rows(results: Results, one: Issue) -> tuple[PlaceRow, ...]:
    """Return an issue's effects, a row for each implementation and kind of topology that ran.

    Where an implementation is removed, only programs that ask for it show an issue.
    """
    versions, gone = jax_versions(results), removed(results)
    found = []
    for name in one.implementations:
        for processes, words in (("one", "one process"), ("several", "several processes")):
            places = [Where(name, jax) for jax in versions]
            own = one.one if processes == "one" else one.several
            cells = tuple(
                _removed(place.jax)
                if place in gone and place not in own
                else _cell(one, place, processes)
                for place in places
            )
            if any(cell.css != "g-none" for cell in cells):
                found.append(PlaceRow(name, words, cells))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Risk:
    """How many known issues an ordinary program meets in a version, by severity."""

    fatal: int
    wrong: int
    errors: int
    costs: int

    @property
    def score(self) -> tuple[int, int]:
        """Sort key: the smallest is the safest."""
        return 4 * (self.fatal + self.wrong) + self.errors, self.costs


_FATAL = (Effect.CRASHES, Effect.HANGS)
_COSTS = (Effect.MOVES_MORE, Effect.NEEDS_MORE_MEMORY)
_ORDINARY = (Usage.ORDINARY, Usage.COMMON)


def risk(effects: Effects, where: Where, processes: str) -> Risk | None:
    """Return the risk of a version for an ordinary program; None if nothing was run.

    Issues of one defect count once, as the most severe of them; issues that need unusual arguments
    or an earlier failure do not count.
    """
    some = issues(effects)
    there = where in existing(effects.results)
    if not there or not any(one.was_run(where, processes) for one in some):
        return None
    by_defect: dict[str, Effect] = {}
    for one in some:
        effect = one.at(where, processes)
        if effect is None or one.usage not in _ORDINARY:
            continue
        defect = one.cause.part_of or one.cause.cause
        known = by_defect.get(defect, effect)
        by_defect[defect] = min(known, effect, key=lambda each: each.gravity)
    found = Counter(by_defect.values())
    return Risk(
        sum(found[effect] for effect in _FATAL),
        found[Effect.WRONG_NUMBERS],
        found[Effect.RAISES],
        sum(found[effect] for effect in _COSTS),
    )


def untested(
    effects: Effects, where: Where, others: Iterable[Where], processes: str
) -> tuple[Issue, ...]:
    """Return the issues that count in one of the other versions, and have no test in this one."""
    places = list(others)
    return tuple(
        one
        for one in issues(effects)
        if one.usage in _ORDINARY
        and not one.was_judged(where, processes)
        and any(one.at(place, processes) for place in places)
    )
