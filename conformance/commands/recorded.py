"""The cells of results files, as the commands read them that look at what was recorded."""

from __future__ import annotations

import json
import lzma
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


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a results file, compressed or not, with their numbers.

    A last line without an end is left out: its run was interrupted. OSError where the file cannot
    be read, ResultsError where it is not as its name says.
    """
    try:
        with lzma.open(file) if file.suffix == ".xz" else file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n"):
                    yield number, line
    except (lzma.LZMAError, EOFError) as error:
        raise ResultsError(f"{file}: not a whole xz file: {error}") from error


def cells(files: Sequence[Path]) -> Iterator[tuple[Record, Record]]:
    """Every cell of all files, each with its target; ResultsError where a line is no record."""
    for file in files:
        targets: dict[str, Record] = {}
        for number, line in lines(file):
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
        packages = target.get("packages", {})
        where = (target["jax"], target["platform"], cell["topology"], packages)
        return tuple(
            one
            for one in self._of.get(cell["clause"], ())
            if one.matches(cell["clause"], cell["implementation"], *where)
        )
