"""The cells of results files, as the commands read them that look at what was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.catalogue import names
from conformance.judging.deviations import Deviation

# Verdicts of a cell of which nothing was judged.
UNJUDGED = (names.REMOVED, names.NOT_APPLICABLE, names.NOT_RUN)

Record = Mapping[str, Any]


class ResultsError(ValueError):
    """A results file that cannot be used; the message names the file and the line."""


def cells(files: Sequence[Path]) -> Iterator[tuple[Record, Record]]:
    """Every cell of all files, each with its target; ResultsError where a line is no record."""
    for file in files:
        targets: dict[str, Record] = {}
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break  # torn: its run was interrupted
            try:
                record = json.loads(line)
                if record["kind"] == "target":
                    targets[record["target"]] = record
                elif record["kind"] == "cell":
                    yield record, targets[record["target"]]
            except (ValueError, TypeError, KeyError) as error:
                raise ResultsError(
                    f"{file}:{number}: no record of a results file: {error}"
                ) from error


class Entries:
    """Deviation entries by the clauses that they name: a run has thousands of cells."""

    def __init__(self, entries: Iterable[Deviation], clauses: Iterable[str]) -> None:
        every = tuple(entries)
        self._of = {id: tuple(one for one in every if one.names(id)) for id in clauses}

    def about(self, cell: Record, target: Record) -> tuple[Deviation, ...]:
        """Those that are about a recorded cell."""
        where = (target["jax"], target["platform"], cell["topology"])
        return tuple(
            one
            for one in self._of.get(cell["clause"], ())
            if one.matches(cell["clause"], cell["implementation"], *where)
        )
