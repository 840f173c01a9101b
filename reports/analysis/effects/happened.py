"""What happened in a cell, in a few words, for tables of many cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from reports.analysis.effects.derive import CRASHED, REPEATS
from reports.analysis.effects.digest import RAISED, job_end, of_job
from reports.store.alike import failed
from reports.store.codes import DTYPE, SHAPE, VALUE, WEAK_TYPE, WITHOUT_THE_FIX
from reports.store.older import code_of
from reports.store.outcomes import Outcome

# A cell that tells nothing of a user's program, in a word.
ABSENT = {
    Verdict.REMOVED: "gone",
    Verdict.NOT_APPLICABLE: "n/a",
    Verdict.NOT_RUN: "not run",
}
RETURNS = "returns"  # how a cell ended that ended well
# How a returned value differs, by the code of what does, the most severe first.
_DIFFERS = {
    VALUE: "other numbers",
    SHAPE: "other shape",
    DTYPE: "other dtype",
    WEAK_TYPE: "other weak type",
}
_WELL = "exit 0"  # how a process of a plain job ends that ends well
_PRINTED = 60  # characters of what a job printed


def ended(cell: Cell) -> str:
    """Return how a cell ended: "returns", "raises ValueError", "hangs", "exit 1: killed"."""
    if cell.fault is not None:
        return "crashes" if cell.fault.kind == CRASHED else "hangs"
    for steps in _steps(cell):
        # Processes may differ: what one of them raised is what ends a user's program.
        for number, step in enumerate(steps):
            if step.get("outcome") == RAISED:
                return _raised(step, steps[:number])
    codes = {code_of(finding) for finding in failed(cell) if finding.step != WITHOUT_THE_FIX}
    if wrong := next((words for code, words in _DIFFERS.items() if code in codes), ""):
        return wrong
    if not cell.observations:
        return cell.verdict.value
    return _job([step for steps in _steps(cell) for step in steps]) or RETURNS


def happened(outcome: Outcome, of_cell: Callable[[Cell], str] = ended) -> str:
    """Return how a cell ended, or a word for why it has no observation: "gone", "not run"."""
    if outcome.verdict in ABSENT or not outcome.runs:
        return ABSENT.get(outcome.verdict, outcome.verdict.value)
    return of_cell(outcome.runs[-1].cell)


def _steps(cell: Cell) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the valid steps of each process, without what a remedy's clause shows first."""
    for observation in cell.observations:
        steps = observation.get("steps")
        yield [
            step
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, dict) and step.get("name") != WITHOUT_THE_FIX
        ]


def _raised(step: Mapping[str, Any], before: list[Mapping[str, Any]]) -> str:
    exception = step.get("exception")
    error = exception.get("type") if isinstance(exception, dict) else None
    again = before and str(step.get("name")).endswith(REPEATS)
    return f"raises {error or 'an exception'}{', second call' if again else ''}"


def _job(steps: list[Mapping[str, Any]]) -> str:
    """Return how the first failed process of a plain job ended, else the first of all."""
    processes = []
    for step in steps:
        extra = step.get("extra")
        if of_job(str(step.get("name"))) and isinstance(extra, dict) and job_end(extra)[0]:
            processes.append(job_end(extra))
    if not processes:
        return ""
    end, *printed = next((one for one in processes if one[0] != _WELL), processes[0])
    text = ", ".join(printed)
    text = text if len(text) <= _PRINTED else text[:_PRINTED] + "…"
    return f"{end}: {text}" if text else end
