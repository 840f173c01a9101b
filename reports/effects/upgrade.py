"""What an upgrade from one side to another does to a user's programs: an entry per cause.

Programs that change for one cause are one entry: the cause that a deviation names, or that its
clause does; without any, a claim and the same kind of difference. What did not change is a number,
and what was not run is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from reports.effects.derive import OF_ALL_ROWS, failing
from reports.effects.effect import Effect, Felt
from reports.effects.pairs import JAX, SHARD_MAP, Cellular, Effects, Side, cell_of
from reports.effects.remedies import FAILED, fared
from reports.reading.order import topology_order
from reports.reading.outcomes import Outcome
from reports.reading.records import Cause
from reports.reading.results import Results
from reports.reading.verdicts import Verdict


class Group(StrEnum):
    """What a reader asks about an upgrade, in the order of asking."""

    DIES = "crashes or hangs"
    WRONG_NUMBERS = "silently gives other numbers"
    RAISES = "raises now"
    OTHER_ERROR = "raises another error"
    MOVES_MORE = "silently communicates, copies or computes more"
    MEMORY = "needs more memory"
    LIES = "lies elsewhere"
    WARNS = "warns"
    FIX_FAILS = "a fix that the documents give and that does not work there"
    REPAIRED = "repaired"


SILENCE = "silence"  # the kind of a claim that says what should be as in legacy pmap, not what is

GROUP_OF = {
    Effect.CRASHES: Group.DIES,
    Effect.HANGS: Group.DIES,
    Effect.WRONG_NUMBERS: Group.WRONG_NUMBERS,
    Effect.RAISES: Group.RAISES,
    Effect.OTHER_ERROR: Group.OTHER_ERROR,
    Effect.MOVES_MORE: Group.MOVES_MORE,
    Effect.NEEDS_MORE_MEMORY: Group.MEMORY,
    Effect.LIES_ELSEWHERE: Group.LIES,
    Effect.WARNS: Group.WARNS,
    Effect.REPAIRED: Group.REPAIRED,
}
# What a failing fix is not told apart by: it is graver than that it does not help.
_GRAVER = (Effect.CRASHES, Effect.HANGS, Effect.WRONG_NUMBERS)


class Seen(NamedTuple):
    """One program on one topology that changed, and its verdicts at both sides."""

    clause: str
    topology: str
    felt: Felt
    verdict: Verdict
    before: Verdict | None  # at the old side; None where the baseline says nothing of it


@dataclass(frozen=True, slots=True)
class Remedy:
    """A clause that shows what to do instead, and where it works at the new side."""

    clause: str
    title: str
    implementation: str
    works: tuple[str, ...]
    fails: tuple[str, ...]

    @property
    def says(self) -> str:
        """Whether it works, in words."""
        if not self.works and not self.fails:
            return "not run there"
        parts = [
            f"{word} on {', '.join(where)}"
            for word, where in (("works", self.works), ("does not work", self.fails))
            if where
        ]
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that changes: a sentence about it, the programs that show it, what helps."""

    group: Group
    effect: Effect
    title: str
    sentence: str
    cause: Cause | None
    claim: str
    seen: tuple[Seen, ...]
    programs: int
    smallest: str
    remedies: tuple[Remedy, ...] = ()
    also: str = field(default="")

    @property
    def topologies(self) -> tuple[str, ...]:
        return tuple(sorted({one.topology for one in self.seen}, key=topology_order))

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.clause for one in self.seen))

    @property
    def example(self) -> Seen:
        """The smallest program's own cell."""
        return next(one for one in self.seen if one.clause == self.smallest)

    @property
    def compared(self) -> bool:
        """Whether the baseline says anything of any of the programs."""
        return any(one.before is not None for one in self.seen)

    @property
    def second_call(self) -> bool:
        """Whether for any program the first call goes well and the second fails."""
        return any(one.felt.second_call for one in self.seen)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """All that changes from one side to another; counts are of programs, which are facts."""

    old: Side
    new: Side
    entries: tuple[Entry, ...]
    same: int
    same_cells: int
    compared: int
    missing: tuple[tuple[str, int], ...]  # why programs were not compared, and how many cells

    def of(self, group: Group) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if one.group is group)

    @property
    def groups(self) -> tuple[tuple[Group, tuple[Entry, ...]], ...]:
        """The groups that have entries, in order."""
        return tuple((group, self.of(group)) for group in Group if self.of(group))


class _Key(NamedTuple):
    group: Group
    cause: str
    claim: str
    shape: str


def upgrade(effects: Effects, old: Side, new: Side) -> Upgrade:
    """What changes for programs that ran on `old` when they run on `new`."""
    return _Made(effects, old, new).upgrade()


@dataclass
class _Made:
    """The state while one upgrade is put together."""

    effects: Effects
    old: Side
    new: Side
    found: dict[_Key, list[Seen]] = field(default_factory=dict)
    missing: Counter[tuple[Verdict, bool]] = field(default_factory=Counter)
    compared: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    same_cells: int = 0

    @cached_property
    def results(self) -> Results:
        return self.effects.results

    def upgrade(self) -> Upgrade:
        same_target = self.old.target.key == self.new.target.key
        columns = self.effects.column(self.old), self.effects.column(self.new)
        for (clause, topology), one, other in zip(self.effects.rows, *columns, strict=True):
            nothing = one is None and other is None
            if nothing or (same_target and JAX in self.results.clauses[clause].expected):
                continue
            self._cells(clause, topology, one, other)
        entries = [self._entry(key, some) for key, some in self.found.items()]
        order = list(Group)
        return Upgrade(
            self.old,
            self.new,
            tuple(
                sorted(
                    entries,
                    key=lambda e: (order.index(e.group), not e.compared, -e.programs, e.title),
                )
            ),
            same=len(self.compared - self.changed),
            same_cells=self.same_cells,
            compared=len(self.compared),
            missing=tuple(
                (f"{verdict.value} under {self.old if of_old else self.new}", count)
                for (verdict, of_old), count in self.missing.most_common()
            ),
        )

    def _cells(
        self, clause: str, topology: str, one: Cellular | None, other: Cellular | None
    ) -> None:
        if other is None or other.digest is None:
            self._note_missing(one, other)
            return
        before = one.digest if one is not None else None
        felt = self.effects.felt(before, other.digest)
        if before is None and felt.effect is Effect.NOT_MEASURED:
            self._note_missing(one, other)
        group = GROUP_OF.get(felt.effect)
        if self._fix_fails(clause, felt, other) and (wrong := failing(other.digest)) is not None:
            group, felt = Group.FIX_FAILS, wrong
        fact = self.results.clauses[clause].fact or clause
        if before is not None:
            self.compared.add(fact)
        if group is None:
            self.same_cells += felt.effect is Effect.SAME
            return
        self.changed.add(fact)
        was = one.outcome.verdict if one is not None and before is not None else None
        seen = Seen(clause, topology, felt, other.outcome.verdict, was)
        told = one if group is Group.REPAIRED and one is not None else other
        cause = self._cause(seen, group, told.outcome)
        claim = "" if cause or group in _BY_SHAPE else self.results.clauses[clause].claim
        key = _Key(group, cause, claim, "" if cause or group in _BY_CLAIM else felt.shape)
        self.found.setdefault(key, []).append(seen)

    def _cause(self, seen: Seen, group: Group, told: Outcome) -> str:
        """The slug of what explains a change; empty where nothing does."""
        # Whatever else such a cell does, shard_map's arrays are of all rows, as its documents say.
        if seen.felt.shape == OF_ALL_ROWS and self.new.implementation == SHARD_MAP:
            return ""
        cause = self.effects.cause_of(seen.clause, told)
        if cause or group not in _BY_SHAPE or seen.before is None:
            return cause
        cells = (
            cell_of(self.results, seen.clause, seen.topology, of) for of in (self.old, self.new)
        )
        return self.effects.explained(seen.felt, *cells)

    def _note_missing(self, one: Cellular | None, other: Cellular | None) -> None:
        """Why a pair was not compared; nothing where neither side has to do with it."""
        verdicts = [
            Verdict.NOT_APPLICABLE if cell is None else cell.outcome.verdict
            for cell in (one, other)
        ]
        if all(verdict in _NOTHING for verdict in verdicts):
            return
        old_lacks = one is None or one.digest is None
        self.missing[verdicts[0 if old_lacks else 1], old_lacks] += 1

    def _fix_fails(self, clause: str, felt: Felt, other: Cellular) -> bool:
        fix = self.results.clauses[clause].fixes is not None
        return fix and other.outcome.verdict in FAILED and felt.effect not in _GRAVER

    def _entry(self, key: _Key, some: list[Seen]) -> Entry:
        clauses = self.results.clauses
        smallest = min(some, key=lambda one: (one.felt.effect.gravity, *self._size(one.clause)))
        cause = self.results.causes.get(key.cause)
        title, sentence = self._said(cause, smallest, key)
        facts = {clauses[one.clause].fact or one.clause for one in some}
        return Entry(
            group=key.group,
            effect=min((one.felt.effect for one in some), key=lambda e: e.gravity),
            title=title,
            sentence=sentence,
            cause=cause,
            claim=clauses[smallest.clause].claim,
            seen=tuple(some),
            programs=len(facts),
            smallest=smallest.clause,
            remedies=tuple(self._remedies(cause, some)) if key.group in _REMEDIED else (),
        )

    def _size(self, clause: str) -> tuple[int, str]:
        return len(self.results.clauses[clause].source), clause

    def _said(self, cause: Cause | None, example: Seen, key: _Key) -> tuple[str, str]:
        """A title, and a sentence below it."""
        if cause is not None:
            return cause.title, cause.sentence
        clause = self.results.clauses[example.clause]
        if key.group in _BY_SHAPE:
            return _TITLES[key.group].format(key.shape), ""
        why = self._why(example, key.group)
        if why:
            first, _, rest = why.partition(". ")
            return first.rstrip("."), rest
        claim = self.results.claims.get(clause.claim)
        if claim is None or claim.claim_kind == SILENCE or example.verdict is not Verdict.CONFORMS:
            return clause.title.rstrip("."), ""
        return claim.statement.rstrip("."), ""

    def _why(self, example: Seen, group: Group) -> str:
        side = self.old if group is Group.REPAIRED else self.new
        outcome = self.results.outcome(
            cell_of(self.results, example.clause, example.topology, side)
        )
        entries = [run.cell.deviation for run in outcome.runs]
        return next((one.why for one in entries if one is not None), "")

    def _remedies(self, cause: Cause | None, some: Sequence[Seen]) -> Iterator[Remedy]:
        named = list(cause.remedies) if cause is not None else []
        named += [one for seen in some for one in self._fixes.get(seen.clause, ())]
        wanted = {seen.topology for seen in some}
        known = [clause for clause in dict.fromkeys(named) if clause in self.results.clauses]
        found = [remedy(self.results, clause, self.new) for clause in known]
        # What works where the thing was seen comes first; the cause's own order is kept within.
        yield from sorted(found, key=lambda one: (-len(wanted & {*one.works}), len(one.fails)))

    @cached_property
    def _fixes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self.results.clauses.values():
            if one.fixes:
                found.setdefault(one.fixes, []).append(one.clause)
        return found


_NOTHING = (Verdict.NOT_APPLICABLE, Verdict.REMOVED)
_REMEDIED = set(Group) - {Group.REPAIRED, Group.FIX_FAILS}
# Without a cause: the same thing happens to all that is held, moved or warned of, whatever was
# claimed; and what a claim is about may be wrong, or another error, in many shapes.
_BY_SHAPE = (Group.MOVES_MORE, Group.LIES, Group.WARNS)
_BY_CLAIM = (Group.WRONG_NUMBERS, Group.OTHER_ERROR, Group.REPAIRED)
_TITLES = {
    Group.MOVES_MORE: "{}",
    Group.LIES: "A result lies elsewhere: {}",
    Group.WARNS: "A warning: {}",
}


def remedy(results: Results, clause: str, at: Side) -> Remedy:
    """Where a remedy works on one side; under shard_map, if it is only that there."""
    title = results.clauses[clause].title
    for implementation in dict.fromkeys((at.implementation, *results.columns(clause))):
        found = fared(results, clause, implementation, at.target.key)
        if found.works or found.fails:
            return Remedy(clause, title, implementation, found.works, found.fails)
    return Remedy(clause, title, at.implementation, (), ())
