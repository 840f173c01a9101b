"""Measure what share of possible errors a cell would detect: each is perturbed and judged again.

A perturbation is detected if the verdict is no longer `conforms` or `known deviation`; an excused
cell that would conform counts as detected, because its entry is then stale.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from conformance.model.verdicts import Verdict
from conformance.mutation.perturbing import PERTURBATIONS
from conformance.mutation.perturbing.case import Case, Perturbation, Seen
from conformance.spec.expectation import All, OfEachStep
from conformance.spec.expected import Expectation
from conformance.spec.observation import Leaf, Observation, Step
from conformance.spec.topology import Place

Compare = Callable[[Place, Step], tuple[bool, str]]

PASSED = (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION)


@dataclass(frozen=True, slots=True)
class Trial:
    """One perturbation of one cell; `saw` is the judge's reason."""

    perturbation: str
    noticed: bool
    saw: str


@dataclass(slots=True)
class Share:
    """How many perturbations were detected of those that were judged."""

    noticed: int = 0
    judged: int = 0

    def add(self, noticed: bool) -> None:
        """Count one more."""
        self.noticed += noticed
        self.judged += 1

    @property
    def missed(self) -> int:
        """The number of perturbations that passed unnoticed."""
        return self.judged - self.noticed

    @property
    def share(self) -> float:
        """The detected share, from 0 to 1; 1 if nothing was judged."""
        return self.noticed / self.judged if self.judged else 1.0


def _shares() -> Any:
    return defaultdict(Share)


@dataclass(slots=True)
class Strength:
    """Shares by (perturbation, section, excused) and by (clause, perturbation, excused).

    `cells` were judged, `cells_of` counts them by clause, `otherwise` are those whose verdict
    differs from the recorded one: they measure nothing. `missed` are the first few undetected
    perturbations, by perturbation and clause.
    """

    by_section: dict[tuple[str, str, bool], Share] = field(default_factory=_shares)
    by_clause: dict[tuple[str, str, bool], Share] = field(default_factory=_shares)
    missed: dict[tuple[str, str], str] = field(default_factory=dict)
    cells: int = 0
    cells_of: Counter[str] = field(default_factory=Counter)
    otherwise: list[str] = field(default_factory=list)

    def add(self, case: Case, excused: bool, trials: Iterable[Trial]) -> None:
        """Count a cell's trials."""
        self.cells += 1
        self.cells_of[case.clause.id] += 1
        for one in trials:
            clause = case.clause
            self.by_section[one.perturbation, clause.section, excused].add(one.noticed)
            self.by_clause[clause.id, one.perturbation, excused].add(one.noticed)
            if not one.noticed:
                where = f"{case.implementation} {case.jax} {case.topology}: {one.saw}"
                self.missed.setdefault((one.perturbation, clause.id), where)

    def join(self, later: Strength) -> None:
        """Add what was measured of later cells."""
        for name in ("by_section", "by_clause"):
            shares = getattr(self, name)
            for key, one in getattr(later, name).items():
                shares[key].noticed += one.noticed
                shares[key].judged += one.judged
        self.missed = later.missed | self.missed
        self.cells += later.cells
        self.cells_of += later.cells_of
        self.otherwise += later.otherwise

    def total(
        self, *, perturbation: str = "", section: str = "", excused: bool | None = None
    ) -> Share:
        """Return the share over everything that matches the arguments."""
        whole = Share()
        for (name, its_section, is_excused), one in self.by_section.items():
            fits = perturbation in ("", name) and section in ("", its_section)
            if fits and excused in (None, is_excused):
                whole.noticed += one.noticed
                whole.judged += one.judged
        return whole

    @property
    def sections(self) -> list[str]:
        """Return the sections in which anything was judged."""
        return sorted({section for _, section, _ in self.by_section})

    @property
    def perturbations(self) -> list[str]:
        """Return the perturbations that applied anywhere, in order."""
        applied = {name for name, _, _ in self.by_section}
        return [one.name for one in PERTURBATIONS if one.name in applied]

    def clauses(self) -> dict[str, Share]:
        """Return each clause's share over all its cells, the weakest first."""
        found: dict[str, Share] = _shares()
        for (clause, _, _), one in self.by_clause.items():
            found[clause].noticed += one.noticed
            found[clause].judged += one.judged
        return dict(sorted(found.items(), key=lambda one: (one[1].share, -one[1].missed, one[0])))

    def unnoticed(self, clause: str) -> dict[str, int]:
        """Return, by perturbation, how often the clause missed it."""
        found: dict[str, int] = defaultdict(int)
        for (id, perturbation, _), one in self.by_clause.items():
            if id == clause and one.missed:
                found[perturbation] += one.missed
        return dict(sorted(found.items(), key=lambda one: -one[1]))


def measure(
    cases: Iterable[Case], *, perturbations: Sequence[Perturbation] = PERTURBATIONS
) -> Strength:
    """Return the strength of the cells that pass as recorded."""
    found = Strength()
    for case in cases:
        begun = prepared(case)
        if begun is None:
            described = f"{case.clause.id} {case.implementation} {case.jax} {case.topology}"
            found.otherwise.append(described)
        else:
            found.add(begun, begun.excused, trials(begun, perturbations))
    return found


def prepared(case: Case) -> Case | None:
    """Return the case with the steps that failed in it; None if it does not pass as recorded."""
    if not case.excused:  # entries alone read what is said
        case = replace(case, seen=replace(case.seen, observations=_unsaid(case.seen)))
    expect = dict(case.clause.expect)
    expect[case.implementation] = remembering(expect[case.implementation], case.seen)
    case = replace(case, clause=replace(case.clause, expect=expect))
    judgement = case.judged(case.seen)
    if judgement.verdict not in PASSED:
        return None
    return replace(case, failed=frozenset(f.step for f in judgement.findings if not f.holds))


def trials(case: Case, perturbations: Sequence[Perturbation] = PERTURBATIONS) -> Iterator[Trial]:
    """Yield every perturbation of a cell, judged; an observation that the judge cannot read is
    detected.
    """
    for perturbation in perturbations:
        for seen in perturbation.of(case):
            try:
                judgement = case.judged(seen)
            except Exception as error:  # an expectation that takes for granted what it compares
                yield Trial(perturbation.name, True, f"{type(error).__name__}: {error}")
            else:
                passed = judgement.verdict in PASSED
                yield Trial(perturbation.name, not passed, judgement.reason)


def sampled(ids: Mapping[str, str], most: int) -> set[str]:
    """Return `most` of the ids, deterministic, and containing every smaller sample.

    `ids` maps each id to its clause: one of every clause comes before a second of any.
    """
    drawn = sorted(ids, key=lambda one: (zlib.crc32(one.encode()), one))
    turn: Counter[str] = Counter()
    turns = []
    for one in drawn:
        turns.append(turn[ids[one]])
        turn[ids[one]] += 1
    order = sorted(range(len(drawn)), key=lambda n: (turns[n], n))
    return {drawn[n] for n in order[:most]}


def remembering(expectation: Expectation, seen: Seen) -> Expectation:
    """Return the expectation with a cache of the comparisons of each step of `seen`.

    A cell is judged some fifty times, with all but one of its steps unchanged.
    """
    steps = {id(step) for one in seen.observations for step in one.steps}
    match expectation:
        case All(parts):
            return All(tuple(remembering(part, seen) for part in parts))
        case OfEachStep():
            return replace(expectation, check_step=_remembered(expectation.check_step, steps))
        case _:
            return expectation


def _remembered(compare: Compare, steps: Collection[int]) -> Compare:
    found: dict[tuple[Place, int], tuple[bool, str]] = {}

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if id(step) not in steps:
            return compare(place, step)
        key = (place, id(step))
        if key not in found:
            found[key] = compare(place, step)
        return found[key]

    return check_step


@dataclass(frozen=True, slots=True)
class _Unsaid(Leaf):
    """A leaf whose values are not formatted, which would take most of a judgement's time."""

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def _unsaid(seen: Seen) -> tuple[Observation, ...]:
    def change_leaf(leaf: Leaf) -> Leaf:
        return _Unsaid(**{one.name: getattr(leaf, one.name) for one in fields(leaf)})

    return tuple(
        replace(
            one,
            steps=tuple(replace(s, leaves=tuple(map(change_leaf, s.leaves))) for s in one.steps),
        )
        for one in seen.observations
    )
