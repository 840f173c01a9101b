"""Explain a difference of two cells that no deviation of the new one explains.

In this order: an entry of the known changes; the entries of the field-by-field comparison
(`comparing`), if those about the fields of the effect name exactly one thing; the known issue by
which the old cell deviated in that step; the clause's claim, if it says that the two differ and
both do as it says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.model.records import JAX, Cell
from conformance.model.verdicts import Verdict
from reports.analysis.comparing import fields
from reports.analysis.comparing.agreement import Pair, documented, failed_steps
from reports.analysis.comparing.entries import Entry, within
from reports.analysis.comparing.fields import (
    Difference,
    Steps,
    compare_steps,
    same_fault,
    steps_of,
)
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.known import Known
from reports.store.alike import likeness
from reports.store.outcomes import CellKey
from reports.store.results import Results

SILENCE = "silence"  # the kind of a claim that says what should be as in legacy pmap, not what is

# In which fields an effect shows; others are explained by what is not compared field by field.
_SHOWS = {
    Effect.WRONG_NUMBERS: (fields.TREE, fields.SHAPE, fields.DTYPE, fields.VALUES),
    Effect.OTHER_ERROR: (fields.ERROR_TYPE,),
    Effect.MOVES_MORE: (fields.COLLECTIVES,),
    Effect.SLOWER: (fields.COMPILED,),
    Effect.LIES_ELSEWHERE: (
        fields.SHAPE,
        fields.DEVICES,
        fields.COMMITTED,
        fields.MEMORY_KIND,
        fields.SHARDING,
    ),
    Effect.OTHER_OUTPUT: (fields.WEAK_TYPE,),
    Effect.WARNS: (fields.WARNINGS,),
}


class By(StrEnum):
    """The kind of explanation of a change."""

    CAUSE = "a cause"
    ENDED = "the end of a cause"
    DOCUMENT = "a document"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of a change: a known issue's or claim's slug, and a remark."""

    by: By = By.NOTHING
    slug: str = ""
    says: str = ""


UNEXPLAINED = Why()


class Explained:
    """Explains effects between cells; equal pairs are compared once."""

    def __init__(
        self, results: Results, entries: Sequence[Entry], known: Sequence[Known] = ()
    ) -> None:
        self._results = results
        self._entries = [one for one in entries if self._carried(one)]
        self._known = [one for one in known if self._carried(one)]
        self._ranges = sorted({one.jax for one in self._entries if one.jax})
        self._differences: dict[Hashable, tuple[Difference, ...]] = {}
        self._steps: dict[Hashable, Steps] = {}
        self._known_of: dict[Hashable, Known | None] = {}
        self._candidates_of: dict[Hashable, list[Entry]] = {}
        self._entry_of: dict[Hashable, Entry | None] = {}
        self._compared_of: dict[Hashable, Entry | None] = {}

    def alike(self, jax: str) -> tuple[bool, ...]:
        """Return which ranges of versions of the entries contain a version."""
        return tuple(within(versions, jax) for versions in self._ranges)

    def why(self, shown: ShownEffect, old: CellKey, new: CellKey) -> Why:
        """Return what explains an effect from one cell to another."""
        before, after = self._cell(old), self._cell(new)
        if before is None or after is None:
            return UNEXPLAINED
        entry = self._matching_entry(shown, old, new)
        if entry is not None and entry.cause:
            return Why(By.CAUSE, entry.cause)
        if entry is not None:
            return Why(By.DOCUMENT, entry.claim, entry.says)
        if shown.effect is Effect.REPAIRED:  # what a document announces mends nothing
            return UNEXPLAINED
        if after.verdict is Verdict.CONFORMS and (cause := self._ended(before, shown.step)):
            return Why(By.ENDED, cause)
        sides = [(key.implementation, key.target.jax or "") for key in (old, new)]
        pair = Pair(*sides[0], *sides[1])
        claim = self._results.claims.get(documented(self._results, pair, before, after, shown.step))
        if claim is None or claim.claim_kind == SILENCE:
            return UNEXPLAINED
        return Why(By.DOCUMENT, claim.slug)

    def _matching_entry(
        self, shown: ShownEffect, old: CellKey, new: CellKey
    ) -> Known | Entry | None:
        """Return the entry that describes the effect; None if there is none.

        A claim distinguishes implementations, never two versions of one.
        """
        asked = shown.effect, shown.shape, new.implementation, new.clause, new.topology
        if asked not in self._known_of:
            known = (one for one in self._known if one.matches(shown, new))
            self._known_of[asked] = next(known, None)
        entry = self._known_of[asked] or self._compared(shown, old, new)
        if entry is not None and entry.claim and old.implementation == new.implementation != JAX:
            return None
        return entry

    def _carried(self, entry: Entry | Known) -> bool:
        """Return whether the results contain what an entry names."""
        return entry.cause in self._results.causes or entry.claim in self._results.claims

    def _cell(self, key: CellKey) -> Cell | None:
        runs = self._results.outcome(key).runs
        return runs[-1].cell if runs else None

    def _compared(self, shown: ShownEffect, old: CellKey, new: CellKey) -> Entry | None:
        """Return the only entry of the comparison that describes the effect's fields.

        A known issue precedes a claim, and a change of every sharding's kind says nothing of
        placement.
        """
        alike = (self._likeness(key) for key in (old, new))
        sides = old.implementation, new.implementation, self.alike(new.target.jax or "")
        asked = shown.effect, shown.step, *sides, new.clause, new.topology, *alike
        if asked not in self._compared_of:
            self._compared_of[asked] = self._only_entry(shown, old, new)
        return self._compared_of[asked]

    def _likeness(self, key: CellKey) -> Hashable:
        """Return what is equal of cells that are compared alike."""
        cell = self._cell(key)
        return (cell and likeness(cell)) or key

    def _only_entry(self, shown: ShownEffect, old: CellKey, new: CellKey) -> Entry | None:
        """Return the only entry that describes the effect's fields, found by comparison."""
        shows = _SHOWS.get(shown.effect, ())
        if not any(one.matches_step(shown.step) for one in self._candidates(shows, new)):
            return None  # comparing cells costs more than anything else here
        found = [
            (one.field, entry)
            for one in self._between(old, new, shown.step)
            if one.field in shows
            if (entry := self._entry(one, old, new)) is not None
        ]
        causes = {entry.cause: entry for _, entry in found if entry.cause}
        claims = {entry.claim: entry for field, entry in found if field != fields.SHARDING}
        some = list((causes or claims).values())
        return some[0] if len(some) == 1 else None

    def _candidates(self, shows: tuple[str, ...], new: CellKey) -> list[Entry]:
        """Return the entries that may describe a difference of these fields in a cell."""
        place = new.implementation, new.clause, new.topology, new.target.jax or ""
        asked = shows, place
        if asked not in self._candidates_of:
            some = [one for one in self._entries if not set(shows).isdisjoint(one.field)]
            self._candidates_of[asked] = [one for one in some if one.matches_place(*place)]
        return self._candidates_of[asked]

    def _between(self, old: CellKey, new: CellKey, step: str) -> tuple[Difference, ...]:
        """Return the differences in one step of two cells."""
        one, other = self._cell(old), self._cell(new)
        if one is None or other is None or not same_fault(one, other):
            return ()
        alike = likeness(one) or old, likeness(other) or new
        asked = *alike, step
        if asked not in self._differences:
            steps = (
                self._step(cell, at, step) for cell, at in zip((one, other), alike, strict=True)
            )
            self._differences[asked] = tuple(compare_steps(*steps).differences)
        return self._differences[asked]

    def _step(self, cell: Cell, alike: Hashable, step: str) -> Steps:
        """Return one step of every process of a cell: a cell is read for many comparisons."""
        if (alike, step) not in self._steps:
            self._steps[alike, step] = [
                (process, {name: one for name, one in steps.items() if name == step})
                for process, steps in steps_of(cell)
            ]
        return self._steps[alike, step]

    def _entry(self, difference: Difference, old: CellKey, new: CellKey) -> Entry | None:
        between, jax = (old.implementation, new.implementation), new.target.jax or ""
        asked = difference, between, new.clause, new.topology, jax
        if asked not in self._entry_of:
            self._entry_of[asked] = next((e for e in self._entries if e.matches(*asked)), None)
        return self._entry_of[asked]

    def _ended(self, before: Cell, step: str) -> str:
        """Return the known issue by which the old cell deviated in a step; empty without one."""
        cause = before.deviation.cause if before.deviation is not None else ""
        return cause if cause in self._results.causes and step in failed_steps(before) else ""
