"""Which deviation entries apply to a recorded cell."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.judging.deviations import Deviation
from conformance.model.records import Cell, Target


class Entries:
    """Deviation entries, indexed by the clauses that they name."""

    def __init__(self, entries: Iterable[Deviation], clauses: Iterable[str]) -> None:
        every = tuple(entries)
        self._of = {id: tuple(one for one in every if one.names(id)) for id in clauses}

    def about(self, cell: Cell, target: Target) -> tuple[Deviation, ...]:
        """Return the entries that apply to a recorded cell."""
        packages = target.packages
        where = (target.jax or "", target.platform or "", cell.topology, packages)
        return tuple(
            one
            for one in self._of.get(cell.clause, ())
            if one.matches(cell.clause, cell.implementation, *where)
        )
