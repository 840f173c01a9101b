"""What is dangerous by itself, whatever its verdict: crashes, wrong values, second calls that fail.

A cell may be green because a document announces the danger, or known because an entry explains it;
a reader wants to know of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from conformance.model.records import Cause, TargetKey
from reports.analysis.effects.digest import of_job
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.remedies import Help
from reports.analysis.effects.rewrites import rewrites
from reports.store.order import implementation_order, topology_order
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results
from reports.store.shown import A_JOB


class Danger(StrEnum):
    """A kind of hazard, the most severe first."""

    CRASHES = "crashes"
    HANGS = "hangs"
    WRONG_NUMBERS = "wrong numbers"
    SECOND_CALL = "works once, then fails"


_OF_EFFECT = {
    Effect.CRASHES: Danger.CRASHES,
    Effect.HANGS: Danger.HANGS,
    Effect.WRONG_NUMBERS: Danger.WRONG_NUMBERS,
}


class Place(NamedTuple):
    """A row of a hazard's table."""

    implementation: str
    jax: str


@dataclass
class Hazard:
    """One hazard: its description, the cells that show it, and where the same programs ran without
    it.
    """

    danger: Danger
    cause: Cause | None
    clause: str  # the smallest that shows it
    sentence: str
    why: str  # what its deviation entry says of it
    shown: dict[CellKey, ShownEffect] = field(default_factory=dict)
    ran: dict[Place, bool] = field(default_factory=dict)

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of the clauses that show it, each once."""
        return tuple(dict.fromkeys(key.clause for key in self.shown))

    @property
    def implementations(self) -> tuple[str, ...]:
        """The implementations that show it, in the order of the site."""
        found = {key.implementation for key in self.shown}
        return tuple(sorted(found, key=implementation_order))

    def new_in(self, versions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the versions that introduced it where it ran before, with the implementations of
        each.
        """
        found: dict[str, tuple[str, ...]] = {}
        for implementation, _, jax in self.turns(versions):
            if self.topologies(implementation, jax):
                found[jax] = (*found.get(jax, ()), implementation)
        return found

    def turns(self, versions: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yield where it begins or ends under each implementation: two versions in a row that
        ran.
        """
        for implementation in self.implementations:
            ran = [jax for jax in versions if Place(implementation, jax) in self.ran]
            for before, after in pairwise(ran):
                shown = [bool(self.topologies(implementation, jax)) for jax in (before, after)]
                if shown[0] != shown[1]:
                    yield implementation, before, after

    def topologies(self, implementation: str, jax: str | None) -> tuple[str, ...]:
        """Return on which topologies it shows; `A_JOB` for programs that start their own
        processes.
        """
        return self._topologies.get((implementation, jax), ())

    @cached_property
    def _topologies(self) -> dict[tuple[str, str | None], tuple[str, ...]]:
        found: dict[tuple[str, str | None], set[str]] = {}
        for key, shown in self.shown.items():
            here = found.setdefault((key.implementation, key.target.jax), set())
            here.add(A_JOB if of_job(shown.step) else key.topology)
        return {place: tuple(sorted(some, key=topology_order)) for place, some in found.items()}


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def hazards(effects: Effects) -> tuple[Hazard, ...]:
    """Return every hazard, the most severe first, then by the number of versions."""
    results = effects.results
    found: dict[tuple[str, ...], Hazard] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict not in RAN:
            continue
        for shown in effects.alone(key):
            danger = _OF_EFFECT.get(shown.effect, Danger.SECOND_CALL)
            slug = effects.cause_of(key.clause, outcome)
            if danger is Danger.WRONG_NUMBERS and slug in rewrites().output_only:
                continue  # what is printed or numbered otherwise
            claim = results.clauses[key.clause].claim
            place = (danger, slug) if slug else (danger, "", claim, shown.shape)
            one = found.get(place)
            if one is None:
                cause = results.causes.get(slug)
                one = Hazard(danger, cause, key.clause, shown.sentence, _why(outcome))
                found[place] = one
            one.shown[key] = shown
            size = len(results.clauses[key.clause].source)
            if size < len(results.clauses[one.clause].source):
                one.clause, one.sentence, one.why = key.clause, shown.sentence, _why(outcome)
    some = list(found.values())
    _ran(results, some)
    order = list(Danger)
    return tuple(
        sorted(some, key=lambda one: (order.index(one.danger), -len(one.shown), one.clause))
    )


def _why(outcome: Outcome) -> str:
    entries = [run.cell.deviation for run in outcome.runs]
    return next((one.why for one in entries if one is not None), "")


def _ran(results: Results, some: list[Hazard]) -> None:
    """Record for each hazard where the tests that show it ran."""
    by_test: dict[tuple[str, str], list[Hazard]] = {}
    for one in some:
        for test in dict.fromkeys((key.clause, key.topology) for key in one.shown):
            by_test.setdefault(test, []).append(one)
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            for one in by_test.get((key.clause, key.topology), ()):
                one.ran[Place(key.implementation, key.target.jax or "")] = True


def joined(some: Iterable[Hazard]) -> tuple[tuple[Hazard, tuple[Hazard, ...]], ...]:
    """Return hazards, each with those that are parts of the same defect; a part whose whole is not
    among `some` stands alone.
    """
    every = list(some)
    wholes = {(one.danger, one.cause.cause): one for one in every if one.cause is not None}
    parts: dict[int, list[Hazard]] = {}
    alone = []
    for one in every:
        whole = wholes.get((one.danger, one.cause.part_of)) if one.cause is not None else None
        if whole is None:
            alone.append(one)
        else:
            parts.setdefault(id(whole), []).append(one)
    return tuple((one, tuple(parts.get(id(one), ()))) for one in alone)


def of_version(some: Iterable[Hazard], jax: str) -> Iterator[Hazard]:
    """Yield the hazards of one JAX."""
    for one in some:
        if any(key.target.jax == jax for key in one.shown):
            yield one


def averts(effects: Effects, hazard: Hazard, jax: str) -> str:
    """Return what averts it in a version, for the first implementation that shows it; "" if
    nothing.

    That is its known issue's edit, if what shows that it works was run. Without a known issue, it
    is what the first test that fixes one of the programs does, if that works.
    """
    targets = dict.fromkeys(key.target for key in hazard.shown if key.target.jax == jax)
    found = (
        _fix(effects, hazard, name, target)
        if hazard.cause is None
        else effects.remedies.edit(hazard.cause, name, target)
        for name in hazard.implementations
        for target in targets
        if hazard.topologies(name, jax)
    )
    return next(filter(None, found), "")


def _fix(effects: Effects, hazard: Hazard, implementation: str, target: TargetKey) -> str:
    """Return the title and the id of the first test that fixes a hazard's program and works; ""
    if none does. An error in every process is a fix of a hang.
    """
    remedies = effects.remedies
    works = (
        clause
        for clause in remedies.of_clauses(hazard.clauses)
        if (found := remedies.at(clause, implementation, target)).help is Help.WORKS
        or (found.works and hazard.danger is Danger.HANGS)
    )
    return next((f"{effects.results.clauses[one].title} (`{one}`)" for one in works), "")
