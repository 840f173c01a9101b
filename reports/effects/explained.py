"""What explains a difference of two cells that both do what is expected: the cause of an entry.

Such a difference has no deviation that could name its cause. But implementations are compared field
by field (`comparing`), and an entry there says by which cause a field differs as it does. What is
felt in a step is put down to a cause where the entries name one, and only one, for all that the two
cells differ by in that step and in the fields in which such an effect shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.comparing import fields
from reports.comparing.entries import Entry
from reports.comparing.fields import Difference, compare_cells
from reports.effects.effect import Effect, Felt
from reports.reading.outcomes import CellKey
from reports.reading.results import Results

# In which fields an effect shows; others are explained by deviations alone.
_SHOWS = {
    Effect.MOVES_MORE: (fields.COLLECTIVES, fields.COMPILED),
    Effect.LIES_ELSEWHERE: (fields.DEVICES, fields.COMMITTED, fields.MEMORY_KIND, fields.SHARDING),
    Effect.WARNS: (fields.WARNINGS,),
}


class Explained:
    """The causes that entries give to what is felt between cells, each pair compared once."""

    def __init__(self, results: Results, entries: Sequence[Entry]) -> None:
        self._results = results
        self._entries = [entry for entry in entries if entry.cause in results.causes]
        self._differences: dict[tuple[CellKey, CellKey], tuple[Difference, ...]] = {}

    def cause_of(self, felt: Felt, old: CellKey, new: CellKey) -> str:
        """The slug of the cause of what is felt from one cell to another; empty without one."""
        shows = _SHOWS.get(felt.effect, ())
        named = {
            self._cause(one, old, new)
            for one in (self._between(old, new) if shows else ())
            if one.field in shows and one.step == felt.step
        } - {""}
        return named.pop() if len(named) == 1 else ""

    def _between(self, old: CellKey, new: CellKey) -> tuple[Difference, ...]:
        if (old, new) not in self._differences:
            self._differences[old, new] = tuple(self._compared(old, new))
        return self._differences[old, new]

    def _compared(self, old: CellKey, new: CellKey) -> Iterator[Difference]:
        one, other = (self._results.outcome(key).runs for key in (old, new))
        if one and other:
            yield from compare_cells(one[-1].cell, other[-1].cell).differences

    def _cause(self, difference: Difference, old: CellKey, new: CellKey) -> str:
        between, jax = (old.implementation, new.implementation), new.target.jax or ""
        return next(
            (
                entry.cause
                for entry in self._entries
                if entry.matches(difference, between, new.clause, new.topology, jax)
            ),
            "",
        )
