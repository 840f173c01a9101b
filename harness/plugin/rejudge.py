"""One results file of many, judged by today's catalogue, with nothing run.

It is what is published: each cell once, by clause, so that records that are alike lie together and
compress to a hundredth.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.commands.recorded import ResultsError
from conformance.judging import deviations
from conformance.judging.rejudging import CannotJudge, Record, Rejudging
from harness.plugin.gathering import Gathered, LeftOut, gather
from harness.plugin.recorder import Recorder
from harness.running.cells import CellId


@dataclass(frozen=True, slots=True)
class Anew:
    """Keeps every cell whose program is today's, whatever its verdict."""

    programs: Mapping[str, str]
    judge: Rejudging

    def wants(self, id: CellId) -> bool:
        """Every cell."""
        return True

    def kept(self, cell: Record, target: Record, program: str) -> dict[str, Any]:
        """The record with today's verdict; LeftOut where what ran is not today's program."""
        if program != self.programs.get(cell["clause"], program):
            raise LeftOut("of another program")
        try:
            return {**self.judge(cell, target), "program": program}
        except CannotJudge as error:
            raise LeftOut(str(error)) from error


def rejudge(files: Sequence[Path], output: Path, progress: Callable[[str], None]) -> Gathered:
    """Write the newest record of every cell of `files` to `output`; what it is made of.

    Timings and what else stands beside cells are taken over as they are.
    """
    if output.resolve() in {file.resolve() for file in files}:
        raise ResultsError(f"{output} is one of the files to read: name another one to write")
    clauses = loading.load()
    recorder = Recorder(
        output, secrets.token_hex(4), clauses, load_claims(), whole=True, keep=False
    )
    try:
        judge = Rejudging(clauses.clauses, deviations.load_all())
        found = gather(files, Anew(recorder.programs, judge), progress)
        for target, record in found.records(found.kept):
            recorder.carried(target, record)
        for of, record in found.beside:
            recorder.carried(of, record)
        recorder.put()
    finally:
        recorder.close()
    return found
