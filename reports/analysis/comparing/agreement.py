"""Compare the implementations with each other: the same fields of each clause, in pairs.

Within a JAX legacy pmap is the reference of the other two; if it was removed, or was unsound, the
legacy pmap of an earlier JAX is. New pmap is compared with shard_map if there is no legacy pmap at
all. A difference that neither a clause's expectations nor a deviation's known issue explains is
undocumented, and new until an entry describes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from conformance.model.records import Cell, Target
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import CompareError, chosen
from reports.analysis.comparing.entries import Entry
from reports.analysis.comparing.fields import ABSENT, FAULT, Difference, compare_cells
from reports.store.alike import failed
from reports.store.codes import WITHOUT_THE_FIX
from reports.store.order import LEGACY, NEW, SHARD_MAP, VersionOrder, version_order
from reports.store.outcomes import RAN, CellKey
from reports.store.results import Results


class Sort(StrEnum):
    """How a difference is explained."""

    SAME = "same, but for what is not theirs"
    DOCUMENTED = "differs as documented"
    BY_CAUSE = "differs by cause"
    UNDOCUMENTED = "differs, undocumented"


class Pair(NamedTuple):
    """Two implementations, each in its JAX."""

    old: str
    old_jax: str
    new: str
    new_jax: str

    def __str__(self) -> str:
        if self.old_jax == self.new_jax:
            return f"{self.old} and {self.new} on jax {self.new_jax}"
        return f"{self.old} on jax {self.old_jax} and {self.new} on jax {self.new_jax}"


class Where(NamedTuple):
    """Where a difference was seen."""

    pair: Pair
    clause: str
    topology: str
    step: str
    seen: str


class Shape(NamedTuple):
    """Grouping key of differences: the field, its old and new value, and the pair."""

    field: str
    old: str
    new: str
    between: tuple[str, str]


@dataclass(slots=True)
class Found:
    """Identical differences: their explanation, and where they were seen."""

    shape: Shape
    sort: Sort
    by: str  # the slug of a claim or of a cause; empty of what is undocumented
    entry: Entry | None
    seen: list[Where] = field(default_factory=list)

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of the clauses that show it, each once."""
        return tuple(dict.fromkeys(one.clause for one in self.seen))

    @property
    def is_new(self) -> bool:
        """Return whether nothing explains it."""
        return self.sort is Sort.UNDOCUMENTED and self.entry is None


@dataclass(slots=True)
class PairCounts:
    """For one pair: cells compared and not comparable, equal fields, and different ones."""

    cells: int = 0
    without: int = 0
    same: Counter[str] = field(default_factory=Counter)
    differ: Counter[Sort] = field(default_factory=Counter)


@dataclass(slots=True)
class Agreement:
    """Everything that was compared."""

    entries: tuple[Entry, ...]
    pairs: dict[Pair, PairCounts] = field(default_factory=dict)
    found: dict[tuple[Shape, Sort, str, str], Found] = field(default_factory=dict)

    @property
    def new(self) -> list[Found]:
        """Return the differences that no claim, known issue or entry explains."""
        return [one for one in self.found.values() if one.is_new]

    @property
    def unused(self) -> list[Entry]:
        """Return the entries that matched nothing."""
        used = {one.entry.where for one in self.found.values() if one.entry is not None}
        return [entry for entry in self.entries if entry.where not in used]

    @property
    def fields(self) -> set[str]:
        """Return the fields that were compared at least once."""
        found = {one.shape.field for one in self.found.values()}
        for counts in self.pairs.values():
            found |= {name for name, count in counts.same.items() if count}
        return found


def agree(results: Results, entries: Sequence[Entry], reference: str | None = None) -> Agreement:
    """Compare everything in the results; `reference` is a JAX whose legacy pmap is that for all.

    By default it is, for each clause, the newest in which legacy pmap conforms, or else the newest
    in which it ran: in its last release legacy pmap can do less than before. CompareError if there
    is nothing to compare.
    """
    reference_target = None if reference is None else _reference_target(results, reference)
    done = Agreement(tuple(entries))
    for clause in results.clauses:
        for topology in results.grid[clause]:
            sound = reference_target or _sound(results, clause, topology)
            for target in results.targets:
                if not target.unavailable:
                    _compare(done, results, clause, topology, target, sound)
    if not any(counts.cells for counts in done.pairs.values()):
        raise CompareError(
            "no clause was run under two implementations, so nothing can be compared: give "
            "results with more of them"
        )
    return done


def _reference_target(results: Results, reference: str) -> Target:
    name, _, version = reference.rpartition("@")
    if name not in ("", LEGACY):
        raise CompareError(f"--reference {reference}: write it {LEGACY}@VERSION")
    return chosen(results, version, "--reference")


def _sound(results: Results, clause: str, topology: str) -> Target | None:
    def rank(target: Target) -> tuple[bool, VersionOrder]:
        cell = _cell(results, CellKey(clause, target.key, LEGACY, topology))
        conforms = cell is not None and cell.verdict is Verdict.CONFORMS
        return conforms, version_order(target.jax or "")

    ran = [
        target
        for target in results.targets
        if _cell(results, CellKey(clause, target.key, LEGACY, topology)) is not None
    ]
    return max(ran, key=rank) if ran else None


def _compare(
    done: Agreement,
    results: Results,
    clause: str,
    topology: str,
    target: Target,
    reference: Target | None,
) -> None:
    def cell(implementation: str, at_target: Target = target) -> Cell | None:
        return _cell(results, CellKey(clause, at_target.key, implementation, topology))

    jax = target.jax or ""
    sides = [(target, cell(LEGACY))]
    if reference is not None and _later(target, reference):
        sides.append((reference, cell(LEGACY, reference)))
    compared = False
    for at_target, side in sides:
        for other in (NEW, SHARD_MAP):
            pair = Pair(LEGACY, at_target.jax or "", other, jax)
            compared |= _pair(done, results, pair, side, cell(other))
    if not compared:
        _pair(done, results, Pair(NEW, jax, SHARD_MAP, jax), cell(NEW), cell(SHARD_MAP))


def _cell(results: Results, key: CellKey) -> Cell | None:
    outcome = results.outcomes.get(key)
    if outcome is None or outcome.verdict not in RAN:
        return None
    return outcome.runs[-1].cell


def _later(target: Target, other: Target) -> bool:
    return (
        target.platform == other.platform
        and target.key != other.key
        and version_order(target.jax or "") > version_order(other.jax or "")
    )


def _pair(
    done: Agreement, results: Results, pair: Pair, one: Cell | None, other: Cell | None
) -> bool:
    """Compare two cells; return whether they were comparable."""
    if one is None or other is None:
        if one is not None or other is not None:
            done.pairs.setdefault(pair, PairCounts()).without += 1
        return False
    counts = done.pairs.setdefault(pair, PairCounts())
    counts.cells += 1
    compared = compare_cells(one, other)
    counts.same.update(compared.same)
    for difference in compared.differences:
        shape = Shape(difference.field, difference.old, difference.new, (pair.old, pair.new))
        sort, by, entry = _sorted(done.entries, results, pair, one, other, difference)
        counts.differ[sort] += 1
        key = (shape, sort, by, entry.where if entry else "")
        found = done.found.setdefault(key, Found(shape, sort, by, entry))
        found.seen.append(
            Where(pair, other.clause, other.topology, difference.step, difference.seen)
        )
    return True


def _sorted(
    entries: Iterable[Entry],
    results: Results,
    pair: Pair,
    one: Cell,
    other: Cell,
    difference: Difference,
) -> tuple[Sort, str, Entry | None]:
    """Return what explains a difference: a deviation in that step, the expectations, or an
    entry.
    """
    for cell in (other, one):
        if cell.deviation is not None and _explains(cell, difference):
            return Sort.BY_CAUSE, cell.deviation.cause or cell.deviation.why, None
    if claim := documented(results, pair, one, other, difference.step):
        return Sort.DOCUMENTED, claim, None
    for entry in entries:
        if entry.matches(
            difference, (pair.old, pair.new), other.clause, other.topology, pair.new_jax
        ):
            if entry.claim:
                return Sort.DOCUMENTED, entry.claim, entry
            if entry.cause:
                return Sort.BY_CAUSE, entry.cause, entry
            if entry.same:
                return Sort.SAME, entry.says, entry
            return Sort.UNDOCUMENTED, "", entry
    return Sort.UNDOCUMENTED, "", None


def _explains(cell: Cell, difference: Difference) -> bool:
    """Return whether the cell's deviation entry concerns the difference's step, or prevented that
    step.
    """
    if (
        difference.field == FAULT
        or cell.fault is not None
        or ABSENT in (difference.old, difference.new)
    ):
        return True
    return difference.step in failed_steps(cell)


def failed_steps(cell: Cell) -> set[str | None]:
    """Return the steps in which a cell does not fulfil its expectation."""
    return {finding.step for finding in failed(cell)}


def documented(results: Results, pair: Pair, one: Cell, other: Cell, step: str | None) -> str:
    """Return the claim by which the two differ in this step, if the clause expects that they do."""
    clause = results.clauses[other.clause]
    if step == WITHOUT_THE_FIX and clause.fixes is not None:
        # It shows the error that is remedied, where there is one: that clause judges which.
        fixed = results.clauses.get(clause.fixes)
        return fixed.claim if fixed else clause.claim
    old, new = clause.expected.get(pair.old, ""), clause.expected.get(pair.new, "")
    by_release = pair.new in clause.by_release and pair.old_jax != pair.new_jax
    if old == new and not by_release:
        return ""
    return "" if step in failed_steps(one) | failed_steps(other) else clause.claim


def ordered(found: Iterable[Found]) -> Iterator[Found]:
    """Yield the most frequent differences first."""
    return iter(sorted(found, key=lambda one: (-len(one.seen), one.shape)))
