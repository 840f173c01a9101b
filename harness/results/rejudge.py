"""Merge results files into one, judged by today's catalogue; runs nothing.

The result is what is published: each cell once, ordered by clause, so that similar records are
adjacent and compress to a hundredth.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

import conformance.model.records as model
from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.commandline.counting import counted
from conformance.judging import deviations
from conformance.judging.rejudging import CannotJudge, Rejudging
from conformance.model.verdicts import Verdict
from conformance.store.errors import ResultsError
from harness.results.gathering import OF_ANOTHER_PROGRAM, Gathered, LeftOut, gather
from harness.results.recorder import Recorder
from harness.running.cells import CellId

RED = (Verdict.DEVIATES, Verdict.CRASHED, Verdict.HUNG, Verdict.FLAKY)
MOST_NAMED = 10  # records or clauses, in the message that refuses them
NOTHING_RAN = (Verdict.NOT_APPLICABLE, Verdict.REMOVED)  # whatever the program is now


class RefusedError(ResultsError):
    """There are records that are not allowed; the message names some."""


class RedError(RefusedError):
    """There are red records although none is allowed."""


class LostError(RefusedError):
    """Cells would be lost although none is allowed: their program changed since they ran."""


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """Keeps every cell whose program is unchanged, whatever its verdict."""

    programs: Mapping[str, str]
    judge: Rejudging
    red: set[str] = field(default_factory=set)

    def wants(self, id: CellId) -> bool:
        """Return true: every cell."""
        return True

    def kept(self, cell: model.Cell, target: model.Target) -> model.Cell:
        """Return the record with today's verdict; LeftOut if the program that ran has changed
        since.
        """
        program = self.programs.get(cell.clause, cell.program)
        if cell.program != program:
            if cell.verdict not in NOTHING_RAN:
                raise LeftOut(OF_ANOTHER_PROGRAM)
            cell = replace(cell, program=program)
        try:
            record = self.judge(cell, target)
        except CannotJudge as error:
            raise LeftOut(str(error)) from error
        self._note(record, cell.clause)
        return record

    def _note(self, record: model.Cell | model.Timing, clause: str) -> None:
        """Remember which records are red; a cell's newest record counts."""
        name = f"{clause} {record.implementation} {record.topology} {record.target}"
        self.red.discard(name)
        if record.verdict in RED:
            self.red.add(name)

    def refuse_red(self, timings: Iterable[model.Timing]) -> None:
        """Raise RedError if a cell, or a measurement of the time lane, is red."""
        for one in timings:
            self._note(one, f"{one.timing} ({one.contender})")
        if self.red:
            some = "; ".join(sorted(self.red)[:MOST_NAMED])
            raise RedError(f"{len(self.red)} records are red, so nothing was written: {some}")


def rejudge(
    files: Sequence[Path],
    output: Path,
    progress: Callable[[str], None],
    *,
    no_red: bool = False,
    no_lost: bool = False,
) -> Gathered:
    """Write the newest record of every cell of `files` to `output`; return what it is made of.

    Timings and other records beside cells are copied. RedError if a record is red and `no_red` is
    set, LostError if a cell has no record of today's program and `no_lost` is set: then nothing is
    written. `output` may be one of `files`: it is replaced at the end.
    """
    clauses = loading.load()
    recorder = Recorder(
        output, secrets.token_hex(4), clauses, load_claims(), whole=True, keep=False
    )
    try:
        judge = Rejudging(clauses.clauses, deviations.load_all())
        chooser = JudgedAgain(recorder.programs, judge)
        found = gather(files, chooser, progress)
        if no_lost:
            _refuse_lost(found)
        if no_red:
            chooser.refuse_red(one for _, one in found.beside if isinstance(one, model.Timing))
        for target, clause, line in found.lines(found.kept):
            recorder.carried_line(target, clause, line)
        for key, record in found.beside:
            recorder.carried(key, record)
        recorder.put()
    finally:
        recorder.close()
    return found


def _refuse_lost(found: Gathered) -> None:
    """Raise LostError if a cell was left out because its program is another now."""
    lost = found.left_out(OF_ANOTHER_PROGRAM)
    if lost:
        clauses = sorted({key.id.clause for key in lost})
        some = ", ".join(clauses[:MOST_NAMED])
        more = f" and {len(clauses) - MOST_NAMED} more" if len(clauses) > MOST_NAMED else ""
        raise LostError(
            f"{counted(len(lost), 'cell')} would be lost, so nothing was written: the programs of "
            "their clauses changed since they were run, and no file has them anew. Run them again, "
            f"or undo what changed: {some}{more}"
        )
