"""Effects of many pairs of cells, each different pair compared once.

A cell is digested once; equal digests are one object, so that what was compared between two
versions need not be between two others that did the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from conformance.model.records import JAX, Cell, Clause, Target, TargetKey
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import CompareError, cause_of, masked
from reports.analysis.comparing.entries import load_entries
from reports.analysis.effects.derive import alone, beside, derive, of_failing
from reports.analysis.effects.digest import Digest, digest
from reports.analysis.effects.effect import Effect, ShownEffect, not_measured
from reports.analysis.effects.explained import Explained, Why
from reports.analysis.effects.happened import ended, happened
from reports.analysis.effects.known import load_known
from reports.analysis.effects.remedies import Remedies
from reports.analysis.effects.rewrites import rewrites
from reports.store.alike import Once, likeness
from reports.store.order import LEGACY, implementation_order
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results
from reports.store.shown import ONE, SEVERAL, processes

_REASON_KEPT = 40  # characters by which two cells have one reason


@dataclass(frozen=True, slots=True)
class Side:
    """One end of an upgrade: an implementation in one JAX."""

    implementation: str
    target: Target

    @property
    def jax(self) -> str:
        """The version of JAX; empty if the target was not available."""
        return self.target.jax or ""

    @property
    def place(self) -> tuple[str, TargetKey]:
        """Return what tells it from other sides."""
        return self.implementation, self.target.key

    def __str__(self) -> str:
        return f"{self.implementation}@{self.jax}"


def sides(results: Results) -> list[Side]:
    """Return each side that has it and ran: an implementation and a JAX version, in order.

    Of several platforms they are those of the one with the most cells, as `Effects` compares.
    """
    by_verdict = results.verdicts
    main = results.platforms[:1]
    # What only asks whether legacy pmap is still there runs where it is not.
    gone = {(i, target) for i, target, verdict in by_verdict if verdict is Verdict.REMOVED}
    ran = {(i, t) for i, t, verdict in by_verdict if verdict in RAN and i != JAX} - gone
    return [
        Side(implementation, target)
        for implementation in sorted({i for i, _ in ran}, key=implementation_order)
        for target in results.targets
        if (implementation, target.key) in ran and target.platform in main
    ]


def side(results: Results, text: str, option: str) -> Side:
    """The side that is written `legacy_pmap@0.7.2`; CompareError says which there are."""
    match = re.fullmatch(r"(\w+)@(.+)", text)
    if match is None:
        how = f"write it IMPLEMENTATION@VERSION, as in {LEGACY}@0.7.2"
        raise CompareError(f"{option} {text}: {how}")
    there = sides(results)
    found = [
        one
        for one in there
        if one.implementation == match[1] and match[2] in (one.jax, one.target.target)
    ]
    if len(found) == 1:
        return found[0]
    of_it = [one.jax for one in there if one.implementation == match[1]]
    if not of_it:
        names = ", ".join(dict.fromkeys(one.implementation for one in there)) or "none"
        missing = f"no cell of {match[1]} was run"
        raise CompareError(f"{option} {text}: {missing}; the files have {names}")
    many = f"{len(found)} targets are that" if found else f"{match[1]} was not run in it"
    raise CompareError(f"{option} {text}: {many}; it was in jax {', '.join(of_it)}")


class Row(NamedTuple):
    """A clause on one of its topologies: a pair of cells for each pair of sides."""

    clause: Clause
    topology: str
    fact: str
    processes: str  # one or several, which a plain program may start itself
    maps_nothing: bool  # so that it is the same under all implementations


class Cellular(NamedTuple):
    """A cell as a pair needs it: its digest, None where it was not run, and its outcome.

    `cause` is what explains it; `alike` is equal for cells of a clause that read the same.
    """

    digest: Digest | None
    outcome: Outcome
    cause: str = ""
    alike: int = -1


class Effects:
    """The effects between cells of some results, computed when asked for and kept.

    `results` are those of the platform with the most cells, because the same JAX on another
    platform is no other version; `every` are all. `also` are further questions to cells; `once`
    answers all of them in one reading of each.
    """

    def __init__(self, results: Results, *also: Callable[[Cell], Any]) -> None:
        self.every, self.results = results, results.of_one_platform()
        self._columns: dict[tuple[str, TargetKey], tuple[Cellular | None, ...]] = {}
        self._alike: dict[Hashable, int] = {}
        self._kept: dict[Hashable, dict[Hashable, Any]] = {}
        self._digests_of: dict[tuple[str, TargetKey], tuple[Digest | None, ...]] = {}
        self._verdicts_of: dict[tuple[str, TargetKey], tuple[tuple[Verdict, bool], ...]] = {}
        self._digests: dict[CellKey, Digest | None] = {}
        self.once = Once(digest, ended, *also, shared=digest)
        self._digest, self._ended = self.once.to(digest), self.once.to(ended)
        self._jobs: dict[tuple[str, str], bool] = {}
        self._shown: dict[tuple[int, int], ShownEffect] = {}
        self._alone: dict[int, tuple[ShownEffect, ...]] = {}

    @cached_property
    def remedies(self) -> Remedies:
        """Return what is a remedy of what in these results."""
        return Remedies(self.results)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return each clause that ran, with each of its topologies."""
        ran = self.results.ran()
        return tuple(
            Row(
                clause,
                topology,
                clause.fact or id,
                self.processes_of(id, topology),
                JAX in clause.expected,
            )
            for id, clause in self.results.clauses.items()
            if id in ran
            for topology in self.results.grid[id]
        )

    @cached_property
    def fixing(self) -> frozenset[int]:
        """Return the numbers of the rows of clauses that fix another."""
        return frozenset(n for n, row in enumerate(self.rows) if row.clause.fixes is not None)

    @cached_property
    def mapping_nothing(self) -> frozenset[int]:
        """Return the numbers of the rows that are the same under all implementations."""
        return frozenset(n for n, row in enumerate(self.rows) if row.maps_nothing)

    def between(self, clause: str, topology: str, old: Side, new: Side) -> ShownEffect | None:
        """Return the effect on a clause's program; None where neither side has a result."""
        before = cell_of(self.results, clause, topology, old)
        after = cell_of(self.results, clause, topology, new)
        if before == after:
            return None
        one, other = self.digest_of(before), self.digest_of(after)
        if other is not None:
            return self.derive(one, other)
        if one is None:
            return None
        outcome = self.results.outcome(after)
        return not_measured(f"{outcome.verdict.value}: {outcome.reason}")

    def from_baseline(
        self, key: CellKey, baseline: Side | None, *, failing: bool = False
    ) -> ShownEffect | None:
        """Return the effect on code that moves from a baseline to a cell; None without one.

        Without an observed baseline, only a hazard by itself is an effect. `failing`: of the steps
        that are not as expected, if these change.
        """
        if baseline is None or key.implementation == baseline.implementation:
            return None
        before = cell_of(self.results, key.clause, key.topology, baseline)
        after = self.digest_of(key)
        if before == key or after is None:
            return None
        derived = of_failing if failing else self.derive
        found = derived(self.digest_of(before), after)
        return None if found.effect is Effect.NOT_MEASURED else found

    def beside(self, known: Effect, key: CellKey, baseline: Side | None) -> Effect:
        """Return the effect on code that moves from a baseline to a cell, beside a known one."""
        after = self.digest_of(key)
        if baseline is None or after is None:
            return Effect.SAME
        before = self.digest_of(cell_of(self.results, key.clause, key.topology, baseline))
        return beside(known, before, after)

    def happened(self, key: CellKey) -> str:
        """Return what happened in a cell, in a few words."""
        return happened(self.results.outcome(key), self._ended)

    def column(self, side: Side) -> tuple[Cellular | None, ...]:
        """Return, per row, the cell of `side`, or None where it does not apply."""
        place = side.place
        if place not in self._columns:
            self._columns[place] = tuple(
                self._cellular(_key(row.clause, row.topology, *place)) for row in self.rows
            )
        return self._columns[place]

    def verdicts(self, side: Side) -> tuple[tuple[Verdict, bool], ...]:
        """Return, per row, the verdict of a side's cell and whether it has no observation."""
        place = side.place
        if place not in self._verdicts_of:
            self._verdicts_of[place] = tuple(
                (Verdict.NOT_APPLICABLE, True)
                if one is None
                else (one.outcome.verdict, one.digest is None)
                for one in self.column(side)
            )
        return self._verdicts_of[place]

    def in_rows(self, old: Side, new: Side) -> list[ShownEffect | None]:
        """Return, per row, the effect from one side to another; None where the new side was not
        run.
        """
        before, after = self.digests(old), self.digests(new)
        # Nearly all are known from another pair of sides.
        found = [*map(self._shown.get, zip(map(id, before), map(id, after), strict=True))]
        for at, shown in enumerate(found):
            if shown is None and (there := after[at]) is not None:
                found[at] = self.derive(before[at], there)
        return found

    def digests(self, side: Side) -> tuple[Digest | None, ...]:
        """Return, per row, the digest of a side's cell; None where it was not run."""
        place = side.place
        if place not in self._digests_of:
            digests = (None if cell is None else cell.digest for cell in self.column(side))
            self._digests_of[place] = tuple(digests)
        return self._digests_of[place]

    def derive(self, old: Digest | None, new: Digest) -> ShownEffect:
        """Return the effect between two digests of this object."""
        place = id(old), id(new)
        if place not in self._shown:
            self._shown[place] = derive(old, new)
        return self._shown[place]

    def alone(self, key: CellKey) -> tuple[ShownEffect, ...]:
        """The hazards of a cell by itself."""
        found = self.digest_of(key)
        if found is None:
            return ()
        if id(found) not in self._alone:
            self._alone[id(found)] = alone(found)
        return self._alone[id(found)] or self._printed_wrong(key, found)

    def _printed_wrong(self, key: CellKey, found: Digest) -> tuple[ShownEffect, ...]:
        """Wrong values that a plain program printed, by the known issue of a test of its text."""
        if key.implementation != JAX or found.holds:
            return ()
        if self.cause_of(key.clause, self.results.outcomes[key]) not in rewrites().printed_wrong:
            return ()
        some = ((step, one) for _, step in found.steps() for one in step.failed)
        return tuple(
            ShownEffect(Effect.WRONG_NUMBERS, one.saw, step.name, "printed values")
            for step, one in [*some][:1]
        )

    def digest_of(self, key: CellKey) -> Digest | None:
        """Return the digest of a cell; None where it was not run."""
        if key not in self._digests:
            outcome = self.results.outcomes.get(key)
            if outcome is None or outcome.verdict not in RAN:
                self._digests[key] = None
            else:
                self._digests[key] = self._digest(outcome.runs[-1].cell)
        return self._digests[key]

    def processes_of(self, clause: str, topology: str) -> str:
        """Return whether a clause has one process or several on a topology; a plain program may
        start several itself.
        """
        alone = processes(topology) == ONE
        return SEVERAL if not alone or self._starts_several(clause, topology) else ONE

    def _starts_several(self, clause: str, topology: str) -> bool:
        """Return whether a clause's program starts several processes, as its first result tells."""
        place = clause, topology
        if place not in self._jobs:
            keys = (CellKey(clause, target.key, JAX, topology) for target in self.results.targets)
            found = next(filter(None, map(self.digest_of, keys)), None)
            self._jobs[place] = found is not None and found.job_processes > 1
        return self._jobs[place]

    def cause_of(self, clause: str, outcome: Outcome) -> str:
        """The slug of what explains a cell; empty where nothing does.

        That is its deviation's cause or, where that is from before entries named causes, the only
        one that other cells of the clause name for the same reason. The clause's own is about what
        changes as documented: it explains a cell that conforms.
        """
        named = cause_of(outcome)
        if named:
            return named
        if outcome.verdict is Verdict.CONFORMS:
            return self.results.clauses[clause].cause
        others = self._causes.get((clause, _begun(outcome)), set())
        return next(iter(others)) if len(others) == 1 else ""

    def why(self, shown: ShownEffect, old: CellKey, new: CellKey) -> Why:
        """Return what explains the effect between two cells, where the new one's entry does not."""
        return self._explained.why(shown, old, new)

    def explained_alike(self, jax: str) -> Hashable:
        """Return what is equal for new versions in which equal cells are explained equally."""
        return self._explained.alike(jax)

    @cached_property
    def _explained(self) -> Explained:
        return Explained(self.results, load_entries(), load_known())

    @cached_property
    def _causes(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for key, outcome in self.results.outcomes.items():
            if named := cause_of(outcome):
                found.setdefault((key.clause, _begun(outcome)), set()).add(named)
        return found

    def _cellular(self, key: CellKey) -> Cellular | None:
        if key.implementation not in self.results.columns(key.clause):
            return None
        digest, outcome = self.digest_of(key), self.results.outcome(key)
        if digest is None:
            return Cellular(None, outcome)
        cause = self.cause_of(key.clause, outcome)
        alike = likeness(outcome.runs[-1].cell) or key, cause
        return Cellular(digest, outcome, cause, self._alike.setdefault(alike, len(self._alike)))

    def kept(self, *question: Hashable) -> dict[Hashable, Any]:
        """Return what a function stores with these results between calls, by its question."""
        return self._kept.setdefault(question, {})


def _begun(outcome: Outcome) -> str:
    """Return how a reason begins: what it is about, without what is another thing each time."""
    return masked(outcome.reason)[:_REASON_KEPT]


def cell_of(results: Results, clause: str, topology: str, side: Side) -> CellKey:
    """The cell of a clause on one side; what maps nothing is the same under all implementations."""
    return _key(results.clauses[clause], topology, *side.place)


def _key(clause: Clause, topology: str, implementation: str, target: TargetKey) -> CellKey:
    if JAX in clause.expected:
        implementation = JAX
    return CellKey(clause.clause, target, implementation, topology)
