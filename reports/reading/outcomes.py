"""What results files say of one cell: its runs, and what they say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from reports.reading.records import Cell, TargetKey
from reports.reading.verdicts import Verdict


class TimingKey(NamedTuple):
    """The place of a contender's figures in the merged results."""

    timing: str
    contender: str
    target: TargetKey
    implementation: str
    topology: str


class CellKey(NamedTuple):
    """The place of a cell in the merged results."""

    clause: str
    target: TargetKey
    implementation: str
    topology: str


@dataclass(frozen=True, slots=True)
class Run:
    """One record of a cell, the file and the run that it came from, its number among all."""

    cell: Cell
    file: str
    run: str
    number: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What all files together say of a cell: several `runs` only where they disagree."""

    verdict: Verdict
    reason: str
    runs: tuple[Run, ...] = ()


def agree(runs: list[Run]) -> Outcome:
    """The outcome of a cell: its last run, or `flaky` where they disagree."""
    runs = sorted(runs, key=lambda r: r.number)
    # A cell that was not run in one file says nothing against what another file saw.
    real = [r for r in runs if r.cell.verdict is not Verdict.NOT_RUN] or runs
    verdicts = Counter(r.cell.verdict for r in real)
    if len(verdicts) == 1:
        last = real[-1]
        return Outcome(last.cell.verdict, last.cell.reason, (last,))
    reason = ", ".join(f"{v.value} in {k} of {len(real)} runs" for v, k in verdicts.items())
    return Outcome(Verdict.FLAKY, reason, tuple(real))
