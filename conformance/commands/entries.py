"""Which deviation entries apply to a recorded cell."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.judging.deviations import ByClause, Deviation
from conformance.model.records import Cell, Target


class Entries:
    """Deviation entries, found by the cells that they apply to."""

    def __init__(self, entries: Iterable[Deviation]) -> None:
        self._entries = ByClause(entries)

    def about(self, cell: Cell, target: Target) -> tuple[Deviation, ...]:
        """Return the entries that apply to a recorded cell."""
        packages = target.packages
        where = (target.jax or "", target.platform or "", cell.topology, packages)
        return tuple(
            one
            for one in self._entries[cell.clause]
            if one.matches(cell.clause, cell.implementation, *where)
        )
