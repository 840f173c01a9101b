"""The effects of an upgrade from one side to another on a user's programs: an entry per known
issue.

Programs that change for one reason are one entry: the known issue that a deviation or its clause
names; else what explains them (`explained`), such as a claim that announces it; else the clauses'
claim and the same kind of difference. Unchanged programs are counted, and what was not run is
listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from conformance.model.records import Cause, Clause
from conformance.model.verdicts import Verdict
from reports.analysis.effects.changed import GROUP_OF, Entry, Group, Seen, Upgrade, facts
from reports.analysis.effects.derive import OF_ALL_ROWS, alone, failing
from reports.analysis.effects.digest import RAISED
from reports.analysis.effects.effect import SAME, SEVERE, Effect, ShownEffect
from reports.analysis.effects.explained import UNEXPLAINED, By, Why
from reports.analysis.effects.pairs import Cellular, Effects, Row, Side, cell_of
from reports.analysis.effects.remedies import FAILED, Help, Remedy
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.issues.derive import found_at, issue_of
from reports.analysis.issues.places import KINDS, Where
from reports.store.codes import NOTE
from reports.store.order import NEW, SHARD_MAP
from reports.store.results import Results
from reports.store.shown import ONE, SEVERAL, processes

# What a known issue does to a program that does not work with it.
_FAILURES = (*SEVERE, Effect.RAISES, Effect.OTHER_ERROR)


class _Key(NamedTuple):
    group: Group
    by: By
    cause: str
    claim: str
    shape: str


class _Changed(NamedTuple):
    """A row that changed, by its number, the key of its entry, and a remark."""

    row: int
    seen: Seen
    key: _Key
    says: str


class _Alike(NamedTuple):
    """A row by its number, and which cells read the same as its own (`Cellular.alike`).

    `before` is None for a cell that did not run.
    """

    row: int
    before: int | None
    after: int


class _Asked(NamedTuple):
    """All that is asked of a row whose cells need not be compared to explain its change."""

    row: int
    shown: ShownEffect
    before: tuple[Verdict, str] | None  # the old cell's verdict, and its known issue
    after: int


class _Missing(NamedTuple):
    """Why a pair was not compared: the verdict of the side that was not run."""

    verdict: Verdict
    of_old: bool


class _Place(NamedTuple):
    """The number of processes of a row (`ONE` or `SEVERAL`), and its fact."""

    processes: str
    fact: str


class _Programs(NamedTuple):
    """What the programs of an entry are, whatever the versions."""

    seen: tuple[Seen, ...]
    clauses: tuple[str, ...]
    facts: int
    smallest: Seen
    effect: Effect


def upgrade(effects: Effects, old: Side, new: Side) -> Upgrade:
    """Return what changes for programs that ran on `old` when they run on `new`."""
    return _Made(effects, old, new).upgrade()


@dataclass
class _Made:
    """The state while one upgrade is assembled."""

    effects: Effects
    old: Side
    new: Side
    found: dict[_Key, list[_Changed]] = field(default_factory=dict)
    missing: Counter[_Missing] = field(default_factory=Counter)
    compared: set[_Place] = field(default_factory=set)
    changed: set[_Place] = field(default_factory=set)
    same_cells: int = 0

    @cached_property
    def results(self) -> Results:
        return self.effects.results

    @cached_property
    def known_alike(self) -> dict[_Alike, _Changed | None]:
        """Return the changes of alike rows in earlier upgrades that are explained alike."""
        return self._kept(_Alike)

    @cached_property
    def known_asked(self) -> dict[_Asked, _Changed | None]:
        """Return the changes in such upgrades for which no cells had to be compared."""
        return self._kept(_Asked)

    def _kept(self, keys: Hashable) -> dict[Any, _Changed | None]:
        """Return what is stored by keys of this type for upgrades that are explained alike."""
        same_jax = self.old.jax == self.new.jax  # what one release changed is not told of it
        implementations = self.old.implementation, self.new.implementation
        explained = self.effects.explained_alike(self.new.jax)
        return self.effects.kept(keys, implementations, explained, same_jax)

    def upgrade(self) -> Upgrade:
        before_of, after_of = self.effects.column(self.old), self.effects.column(self.new)
        effects = self.effects.in_rows(self.old, self.new)
        same, others, unknown = self._parted(effects)
        self.same_cells = len(same)
        self.compared.update(map(self._places.__getitem__, same))
        unknown += self._note(others, before_of, after_of)
        self._note_missing(sorted(unknown))
        return self._whole()

    def _note(
        self,
        others: Sequence[tuple[int, ShownEffect]],
        before_of: Sequence[Cellular | None],
        after_of: Sequence[Cellular | None],
    ) -> list[int]:
        """Note how rows changed; return the numbers of those that are not known from both sides.

        A fix that fails now is noted, whatever it did before.
        """
        # A site comes here with a million rows.
        known, places, found = self.known_alike, self._places, self.found
        compared, changed = self.compared.add, self.changed.add
        unknown: list[int] = []
        for number, change in others:
            other = after_of[number]
            assert other is not None  # nothing has an effect on what was not run
            before = before_of[number]
            if before is not None and before.digest is None:
                before = None
            if before is not None:
                compared(places[number])
            elif change.effect is Effect.NOT_MEASURED:
                unknown.append(number)
            # Cells of several versions that were recorded alike change alike.
            alike = _Alike(number, None if before is None else before.alike, other.alike)
            if alike not in known:
                known[alike] = self._changed(number, before, other, change)
            one = known[alike]
            if one is None:
                self.same_cells += change.effect is Effect.SAME
                continue
            changed(places[number])
            found.setdefault(one.key, []).append(one)
        return unknown

    def _whole(self) -> Upgrade:
        """Return the upgrade of all that was noted."""
        groups = list(Group)

        def order(entry: Entry) -> tuple[int, bool, bool, int, str]:
            compared = entry.compared
            more = not (compared and entry.ran_before), not compared
            return groups.index(entry.group), *more, -entry.programs, entry.title

        places = Counter(one.processes for one in self.compared)
        found = ((key, self._news(key, some)) for key, some in self.found.items())
        entries = (self._entry(key, some) for key, some in found if some)
        return Upgrade(
            self.old,
            self.new,
            tuple(sorted(entries, key=order)),
            same_cells=self.same_cells,
            compared_of={
                "": len(facts(self.compared, "")),
                ONE: places[ONE],
                SEVERAL: places[SEVERAL],
            },
            differing=frozenset(self.compared & self.changed),
            missing=tuple(
                (f"{one.verdict.value} under {self.old if one.of_old else self.new}", count)
                for one, count in self.missing.most_common()
            ),
        )

    @cached_property
    def _places(self) -> Sequence[_Place]:
        """Return, per row, its number of processes and its fact."""
        kept = self.effects.kept(_place)
        if not kept:
            kept[""] = tuple(map(_place, self.effects.rows))
        found: Sequence[_Place] = kept[""]
        return found

    def _parted(
        self, effects: Sequence[ShownEffect | None]
    ) -> tuple[list[int], list[tuple[int, ShownEffect]], list[int]]:
        """Return the numbers of the rows that are the same, the others with their effects, and
        the numbers of those that the new side has not.
        """
        fixes = self.effects.fixing
        same_target = self.old.target.key == self.new.target.key
        left_out = self.effects.mapping_nothing if same_target else frozenset[int]()
        apart = fixes | left_out
        same = [n for n, change in enumerate(effects) if change is SAME and n not in apart]
        others = [
            (n, change)
            for n, change in enumerate(effects)
            if change is not None and (change is not SAME or n in fixes) and n not in left_out
        ]
        unknown = [n for n, change in enumerate(effects) if change is None and n not in left_out]
        return same, others, unknown

    def _changed(
        self, number: int, before: Cellular | None, other: Cellular, shown: ShownEffect
    ) -> _Changed | None:
        """Return the change of a row with this effect; None if nothing changed."""
        # Seldom is more asked of the old cell than its verdict and what explains it.
        was = None if before is None else (before.outcome.verdict, before.cause)
        asked = _Asked(number, shown, was, other.alike)
        if asked in self.known_asked:
            return self.known_asked[asked]
        row = self.effects.rows[number]
        found, compared = self._change_of(number, row, before, other, shown)
        if not compared:
            self.known_asked[asked] = found
        return found

    def _change_of(
        self, number: int, row: Row, before: Cellular | None, other: Cellular, shown: ShownEffect
    ) -> tuple[_Changed | None, bool]:
        """Return the change of a row, and whether the cells were compared to explain it."""
        group = GROUP_OF.get(shown.effect)
        if self._fix_fails(row.clause, shown, other) and other.digest is not None:
            wrong = failing(other.digest)
            group, shown = (group, shown) if wrong is None else (Group.FIX_FAILS, wrong)
        if group is None:
            return None, False
        was = None if before is None else before.outcome.verdict
        seen = Seen(
            row.clause.clause,
            row.topology,
            shown,
            other.outcome.verdict,
            was,
            row.fact,
            row.processes,
            row.processes == ONE and _alone(row.clause),
        )
        if group is Group.OTHER_ERROR and _became_right(seen):
            group = Group.REPAIRED  # the error is now the one that is expected
        # A repair is told by what was wrong; or by what lets pass now what was refused.
        cells_described = (
            (before, other) if group is Group.REPAIRED and before is not None else (other,)
        )
        failed = () if other.digest is None else other.digest.failed
        noted = bool(failed) and all(one.code == NOTE for one in failed)
        why = self._why(seen, group, [cell.cause for cell in cells_described], noted)
        compared = why is None
        if why is None:
            sides = self.old, self.new
            cells = (cell_of(self.results, seen.clause, seen.topology, side) for side in sides)
            why = self.effects.why(seen.shown, *cells)
        ended = why.slug if why.by is By.ENDED else ""
        if ended and before is not None and self._failed(ended, before, shown.step):
            group = Group.REPAIRED
        return _Changed(number, seen, self._key(seen, group, why), why.says), compared

    def _failed(self, slug: str, before: Cellular, step: str) -> bool:
        """Return whether a program failed by a known issue before: by what the issue does on that
        side, or by itself, or because it raised in one process and not in another.
        """
        issue = issue_of(self.effects).get(slug)
        if issue is not None and issue.at(self._old_place) in _FAILURES:
            return True
        digest = before.digest
        raised = digest is not None and any(
            one.outcome == RAISED and one.name == step for _, one in digest.steps()
        )
        return raised or (digest is not None and bool(alone(digest)))

    def _key(self, seen: Seen, group: Group, why: Why) -> _Key:
        if group is Group.WRONG_NUMBERS and why.slug in rewrites().output_only:
            group = Group.OUTPUT
        if why.by is By.ENDED and group is Group.REPAIRED:
            return _Key(group, By.CAUSE, why.slug, "", "")
        if why.by is By.DOCUMENT:
            return _Key(group, why.by, "", why.slug, "")
        if why.by is not By.NOTHING:
            return _Key(group, why.by, why.slug, "", "")
        claim = "" if group in _BY_SHAPE else self.results.clauses[seen.clause].claim
        return _Key(group, why.by, "", claim, "" if group in _BY_CLAIM else seen.shown.shape)

    def _why(self, seen: Seen, group: Group, causes: Sequence[str], noted: bool) -> Why | None:
        """Return what explains a change: the first known issue that applies. None if the cells
        have to be compared.

        `noted`: what they explain is a probe's note, which says nothing about a result's placement.
        """
        # Whatever else such a cell does, shard_map's arrays are of all rows, as its documents say.
        all_rows = seen.shown.shape == OF_ALL_ROWS and self.new.implementation == SHARD_MAP
        cause = next(filter(None, causes), "")
        elsewhere = group is Group.LIES and noted
        if cause and not all_rows and not elsewhere and self._applies(cause, seen, group):
            return Why(By.CAUSE, cause)
        if group is Group.FIX_FAILS or seen.before is None:
            return UNEXPLAINED
        return None

    def _applies(self, cause: str, seen: Seen, group: Group) -> bool:
        """Return whether a known issue applies to this side: a clause that holds may name one for
        its document.

        If another implementation is expected to raise by it, this one returns, and its result is
        due to the known issue only if that issue's program shows it here, or for any
        implementation.
        """
        known = self.results.causes.get(cause)
        if known is None or group not in _RETURNED or seen.verdict is not Verdict.CONFORMS:
            return True
        return known.shown_of(self.new.implementation)

    def _note_missing(self, rows: Sequence[int]) -> None:
        """Record why pairs were not compared; nothing if one applies to neither side."""
        old, new = self.effects.verdicts(self.old), self.effects.verdicts(self.new)
        pairs = Counter((old[number], new[number]) for number in rows)
        for ((was, old_lacks), (now, _)), count in pairs.items():
            if was in _NOTHING and now in _NOTHING:  # of three quarters of these pairs
                continue
            self.missing[_Missing(was if old_lacks else now, old_lacks)] += count

    def _fix_fails(self, clause: Clause, shown: ShownEffect, other: Cellular) -> bool:
        fix = clause.fixes is not None
        return fix and other.outcome.verdict in FAILED and shown.effect not in SEVERE

    def _news(self, key: _Key, some: list[_Changed]) -> list[_Changed]:
        """Return the rows that may be news: without those that the old side did not run, if other
        tests show the same known issue there with an effect that is at least as severe; with the
        same number of processes, if any of them ran with it.
        """
        issue = issue_of(self.effects).get(key.cause) if key.cause in self._before else None
        if issue is None or all(one.seen.before is not None for one in some):
            return some
        old = self._old_place
        effects = {
            processes: issue.at(old, kind if issue.was_tested(old, kind) else "")
            for processes, kind in zip((ONE, SEVERAL), KINDS, strict=True)
        }

        def is_known(seen: Seen) -> bool:
            effect = effects[seen.processes]
            return effect is not None and effect.rank <= seen.shown.effect.rank

        return [one for one in some if one.seen.before is not None or not is_known(one.seen)]

    def _entry(self, key: _Key, some: list[_Changed]) -> Entry:
        """Return the entry of rows that changed; equal entries of several upgrades are one object.

        What changed is kept with the results, so that its place in memory is its name.
        """
        programs = self._programs(key, some)
        cause = self.results.causes.get(key.cause)
        title, sentence = self._title_and_sentence(cause, programs.smallest, key, some[0].says)
        on_new = self.effects.kept(Remedy, self.new.place)
        if id(programs) not in on_new:
            on_new[id(programs)] = tuple(self._remedies(cause, key, programs.seen))
        remedies = on_new[id(programs)]
        as_shard_map = key.group in _REMEDIED and self._as_shard_map(some)
        known = self.effects.kept(Entry)
        shown_before = bool(key.cause) and key.cause in self._before
        asked = id(programs), key, title, sentence, remedies, as_shard_map, shown_before
        if asked not in known:
            known[asked] = Entry(
                group=key.group,
                effect=programs.effect,
                title=title,
                sentence=sentence,
                cause=cause,
                claim=key.claim or self.results.clauses[programs.smallest.clause].claim,
                seen=programs.seen,
                clauses=programs.clauses,
                programs=programs.facts,
                smallest=programs.smallest.clause,
                remedies=remedies,
                by=key.by,
                as_shard_map=as_shard_map,
                whole=self.results.causes.get(cause.part_of) if cause is not None else None,
                shown_before=shown_before,
            )
        entry: Entry = known[asked]
        return entry

    @cached_property
    def _old_place(self) -> Where:
        return Where(self.old.implementation, self.old.jax)

    @cached_property
    def _before(self) -> frozenset[str]:
        """Return the known issues that have an effect on the old side."""
        return found_at(self.effects, self._old_place)[0]

    def _programs(self, key: _Key, some: list[_Changed]) -> _Programs:
        known = self.effects.kept(_Programs)
        asked = key, *map(id, some)
        if asked not in known:
            clauses = self.results.clauses
            seen = tuple(one.seen for one in some)
            named = tuple(dict.fromkeys(one.clause for one in seen))
            known[asked] = _Programs(
                seen,
                named,
                len({clauses[id].fact or id for id in named}),
                self._smallest(self.results.causes.get(key.cause), seen),
                _effect(key.group, seen),
            )
        programs: _Programs = known[asked]
        return programs

    def _smallest(self, cause: Cause | None, some: Iterable[Seen]) -> Seen:
        """Return the most severe of some programs, of equals the shortest that names a tagged
        call.
        """
        known = self.effects.kept(Seen, None if cause is None else cause.cause)
        for one in some:
            if one.clause not in known:
                known[one.clause] = not self._named(cause, one.clause), *self._size(one.clause)
        return min(
            some, key=lambda one: (one.shown.effect.rank, one.shown.refused, *known[one.clause])
        )

    def _as_shard_map(self, some: list[_Changed]) -> bool:
        """Return whether each program ran under shard_map on the new side's JAX and behaves as
        before.
        """
        if self.new.implementation != NEW:
            return False
        before = self.effects.digests(self.old)
        after = self.effects.digests(Side(SHARD_MAP, self.new.target))
        return all(
            (there := after[one.row]) is not None
            and _as_before(self.effects.derive(before[one.row], there))
            for one in some
        )

    def _named(self, cause: Cause | None, clause: str) -> bool:
        """Return whether a clause's title names a call that tags the known issue, beside
        the map.
        """
        if cause is None:
            return False
        calls = _calls(" ".join(cause.tags))
        return bool(calls) and not _words(self.results.clauses[clause].title).isdisjoint(calls)

    def _size(self, clause: str) -> tuple[int, str]:
        return len(self.results.clauses[clause].source), clause

    def _title_and_sentence(
        self, cause: Cause | None, example: Seen, key: _Key, says: str
    ) -> tuple[str, str]:
        """Return a title, and the sentence below it."""
        if cause is not None and key.by is By.ENDED:
            return f"{_NOW.get(key.group, 'Changed')}. Before: {cause.title.rstrip('.')}", ""
        if cause is not None:
            return cause.title, cause.sentence
        if key.by is By.DOCUMENT:
            statement = self.results.claims[key.claim].statement.rstrip(".")
            return f"As documented: {statement}", says
        clause = self.results.clauses[example.clause]
        if key.group in _BY_SHAPE:
            title = _PLACED.get(key.shape) or _TITLES[key.group].format(key.shape)
            result = (
                f", in the test “{clause.title.rstrip('.')}”" if key.group is Group.LIES else ""
            )
            return f"{title}{result}", ""
        why = self._entry_of(example, key.group)
        if why:
            first, _, rest = why.partition(". ")
            return first.rstrip("."), rest
        claim = self.results.claims.get(clause.claim)
        if example.verdict is not Verdict.CONFORMS:
            # A clause's title says what is expected, and a reader takes a title for what is so.
            was = example.before is Verdict.CONFORMS
            return f"{'No longer holds' if was else 'Expected'}: {clause.title.rstrip('.')}", ""
        title = clause.title if claim is None or claim.silent else claim.statement
        frame = _IN_TEST.get(key.group, "{}")  # the title is about the end of the test
        return frame.format(title.rstrip(".")), ""

    def _entry_of(self, example: Seen, group: Group) -> str:
        """Return the description in a deviation entry that names no known issue."""
        side = self.old if group is Group.REPAIRED else self.new
        outcome = self.results.outcome(
            cell_of(self.results, example.clause, example.topology, side)
        )
        entries = [run.cell.deviation for run in outcome.runs]
        return next((one.why for one in entries if one is not None), "")

    def _remedies(self, cause: Cause | None, key: _Key, some: Sequence[Seen]) -> Iterator[Remedy]:
        if key.group not in _REMEDIED and not (cause and key.group is Group.FIX_FAILS):
            return
        remedies = self.effects.remedies
        # Of programs that one claim announces, those of other claims have fixes for other things.
        fixed = (
            seen.clause
            for seen in some
            if key.by is not By.DOCUMENT or self.results.clauses[seen.clause].claim == key.claim
        )
        named = remedies.of_cause(cause) if cause else remedies.of_clauses(fixed)
        wanted = {seen.topology for seen in some}
        at = self.new.implementation, self.new.target.key
        found = [remedies.at(clause, *at) for clause in named]
        order = list(Help)
        # What works where the thing was seen comes first; the cause's own order is kept within.
        yield from sorted(
            found,
            key=lambda one: (order.index(one.help), -len(wanted & {*one.works}), len(one.fails)),
        )


def _place(row: Row) -> _Place:
    return _Place(row.processes, row.fact)


_MOVED = {
    Group.OUTPUT: Effect.OTHER_OUTPUT,
    Group.TAKEN: Effect.TAKEN,
    Group.REPAIRED: Effect.REPAIRED,
}


def _effect(group: Group, some: Sequence[Seen]) -> Effect:
    """Return the most severe effect of an entry's programs, or that of the group they were moved
    to.
    """
    if group in _MOVED:
        return _MOVED[group]
    return min((one.shown.effect for one in some), key=lambda effect: effect.rank)


def _as_before(shown: ShownEffect) -> bool:
    return shown.effect in (Effect.SAME, Effect.REPAIRED) or shown.shape == OF_ALL_ROWS


def _became_right(seen: Seen) -> bool:
    return seen.verdict is Verdict.CONFORMS and seen.before in FAILED


def _alone(clause: Clause) -> bool:
    return {processes(one) for one in clause.topologies} == {ONE}


@lru_cache(maxsize=8192)
def _words(title: str) -> frozenset[str]:
    return frozenset(_WORD.findall(title))


@lru_cache(maxsize=1024)
def _calls(tags: str) -> frozenset[str]:
    """Return the calls among a known issue's tags, beside the map."""
    return frozenset(_CALL.findall(tags)) - _MAPS


_WORD, _CALL = re.compile(r"\w+"), re.compile(r"\w+\.(\w+)\b(?!\.)")
_MAPS = {"pmap", "shard_map"}
_NOTHING = (Verdict.NOT_APPLICABLE, Verdict.REMOVED)
_RETURNED = (Group.WRONG_NUMBERS, Group.LIES)
_REMEDIED = set(Group) - {Group.REPAIRED, Group.FIX_FAILS}
# Without a cause: the same thing happens to all that is held, moved or warned of, whatever was
# claimed; and what a claim is about may be wrong, or another error, in many shapes.
_BY_SHAPE = (Group.MOVES_MORE, Group.LIES, Group.WARNS)
_BY_CLAIM = (Group.WRONG_NUMBERS, Group.OTHER_ERROR, Group.REPAIRED)
# What programs do for which a known issue ended, where they worked before.
_NOW = {
    Group.RAISES: "Raises the expected error now",
    Group.WARNS: "Warns now, as expected",
    Group.LIES: "Has the expected sharding now",
}
_IN_TEST = {
    Group.RAISES: "An error that is expected, within the test “{}”",
    Group.OTHER_ERROR: "Another error than before, within the test “{}”",
}
_PLACED = {
    words: f"A result is {words} than before"
    for words in ("on fewer devices", "on more devices", "on other devices")
}
_TITLES = {
    Group.MOVES_MORE: "{}",
    Group.LIES: "A result has another sharding: {}",
    Group.WARNS: "A warning: {}",
}
