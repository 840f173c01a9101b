"""Iterate over the cells of results files, for commands on recorded observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.model.codec import NoValue
from conformance.model.records import Cell, Target, Timing
from conformance.model.verdicts import Verdict
from conformance.store.errors import ResultsError
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


def no_cell(files: Sequence[Path]) -> ResultsError:
    """Return the error for files without a cell of this catalogue; the caller raises it."""
    return ResultsError(
        f"{', '.join(map(str, files))}: no cell is of a clause of this catalogue; "
        "give results of this version"
    )
