"""What happened in a cell in a few words, and what that is for code that comes from elsewhere.

Both look at single cells: a table of all effects costs more than a page that needs a few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.effects.derive import WITHOUT_THE_FIX, derive
from reports.effects.digest import RAISED, Digest, digest
from reports.effects.effect import Effect, Felt
from reports.effects.pairs import RAN, cell_of
from reports.reading.codes import DTYPE, SHAPE, VALUE, code_of
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Cell
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.columns import Column

# A cell that tells nothing of a user's program, in a word.
ABSENT = {
    Verdict.REMOVED: "gone",
    Verdict.NOT_APPLICABLE: "n/a",
    Verdict.NOT_RUN: "not run",
}
_CRASHED = "crashed"
_AGAIN = ("second call", " again")  # how the names of steps end that repeat one
_WRONG = {VALUE, SHAPE, DTYPE}


def happened(outcome: Outcome) -> str:
    """As in "returns", "raises ValueError", "hangs", "not run"."""
    if outcome.verdict in ABSENT or not outcome.runs:
        return ABSENT.get(outcome.verdict, outcome.verdict.value)
    cell = outcome.runs[-1].cell
    if cell.fault is not None:
        return "crashes" if cell.fault.kind == _CRASHED else "hangs"
    for steps in _steps(cell):
        # Processes may differ: what one of them raised is what ends a user's program.
        for number, step in enumerate(steps):
            if step.get("outcome") == RAISED:
                return _raised(step, steps[:number])
    failed = (f for f in cell.findings if not f.holds and f.step != WITHOUT_THE_FIX)
    if any(code_of(finding) in _WRONG for finding in failed):
        return "other numbers"
    return "returns" if cell.observations else outcome.verdict.value


def felt(results: Results, key: CellKey, baseline: Column | None) -> Felt | None:
    """What code feels that moves from the baseline to a cell; None where there is nothing to say.

    Without an observed baseline only what is a hazard by itself is felt.
    """
    if baseline is None or key.implementation == baseline.side.implementation:
        return None
    before = cell_of(results, key.clause, key.topology, baseline.side)
    after = _digest(results, key)
    if before == key or after is None:
        return None
    found = derive(_digest(results, before), after)
    return None if found.effect is Effect.NOT_MEASURED else found


def _digest(results: Results, key: CellKey) -> Digest | None:
    outcome = results.outcomes.get(key)
    if outcome is None or outcome.verdict not in RAN:
        return None
    return digest(outcome.runs[-1].cell)


def _steps(cell: Cell) -> Iterator[list[Mapping[str, Any]]]:
    """The well-formed steps of each process, but for what a remedy's clause shows first."""
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
    again = before and str(step.get("name")).endswith(_AGAIN)
    return f"raises {error or 'an exception'}{', second call' if again else ''}"
