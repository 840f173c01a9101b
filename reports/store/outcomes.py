"""What results files say of one cell: its runs, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from conformance.model.records import Cell, TargetKey
from conformance.model.verdicts import Verdict

# The verdicts of cells that ran.
RAN = frozenset(
    {
        Verdict.CONFORMS,
        Verdict.DEVIATES,
        Verdict.KNOWN_DEVIATION,
        Verdict.CRASHED,
        Verdict.HUNG,
        Verdict.FLAKY,
    }
)

MOST_NAMED = 10  # cells whose records have several verdicts, named in a note


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
    """One record of a cell, the file and the run that it came from, its number among all.

    `started` is when that run began, as its target's record says.
    """

    cell: Cell
    file: str
    run: str
    number: int
    started: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The merged outcome of a cell over all files; `runs` has the record that counts."""

    verdict: Verdict
    reason: str
    runs: tuple[Run, ...] = ()


def newest(runs: tuple[Run, ...]) -> Outcome:
    """The outcome of a cell: its newest record, as older ones are of an older catalogue.

    A cell that was not run says nothing against what another run saw of it.
    """
    if len(runs) == 1:
        return Outcome(runs[0].cell.verdict, runs[0].cell.reason, runs)
    last = max(runs, key=lambda r: (r.cell.verdict is not Verdict.NOT_RUN, r.started, r.number))
    return Outcome(last.cell.verdict, last.cell.reason, (last,))


def repeated(runs: Mapping[CellKey, Sequence[Run]]) -> str:
    """Return what a reader must know of cells that were recorded more than once; empty where none
    was.
    """
    several = {
        key: [one.cell.verdict for one in some if one.cell.verdict is not Verdict.NOT_RUN]
        for key, some in runs.items()
        if len(some) > 1
    }
    if not several:
        return ""
    changed = [key for key, verdicts in several.items() if len(set(verdicts)) > 1]
    cells = "1 cell is" if len(several) == 1 else f"{len(several)} cells are"
    text = f"{cells} recorded more than once; the newest record of each is shown"
    if not changed:
        return text
    named = "; ".join(f"{k.clause} {k.implementation} {k.topology}" for k in changed[:MOST_NAMED])
    more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
    return f"{text}; the verdicts differ in {len(changed)}: {named}{more}"
