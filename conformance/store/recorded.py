"""Iterate over the cells of results files, for commands on recorded observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from conformance.judging.deviations import Deviation
from conformance.model.codec import NoValue
from conformance.model.records import Cell, Target, Timing
from conformance.model.verdicts import Verdict
from conformance.store.reading import no_record, records

# Verdicts of a cell of which nothing was judged.
UNJUDGED = (Verdict.REMOVED, Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


def cells(files: Sequence[Path]) -> Iterator[tuple[Cell, Target]]:
    """Yield every cell of all files with its target; ResultsError names an invalid line."""
    for file in files:
        targets: dict[str, Target] = {}
        for number, record in records(file):
            if isinstance(record, Target):
                targets[record.target] = record
            elif isinstance(record, Cell):
                yield record, target_of(record, targets, file, number)


def target_of(
    record: Cell | Timing, targets: Mapping[str, Target], file: Path, number: int
) -> Target:
    """Return the target's record that precedes a cell's; ResultsError if there is none."""
    target = targets.get(record.target)
    if target is None:
        error = NoValue(f"target {record.target!r} has no target record before it")
        raise no_record(file, number, error)
    return target


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
