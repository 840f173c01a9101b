"""What happened in a cell, in a few words that a reader of a table takes in at once."""

from __future__ import annotations

from reports.effects.digest import RAISED, Digest, Step
from reports.reading.codes import DTYPE, SHAPE, VALUE
from reports.reading.verdicts import Verdict

_CRASHED = "crashed"
_WITHOUT_THE_FIX = "without the fix"  # a remedy's clause shows first what it remedies
_WRONG = {VALUE, SHAPE, DTYPE}


ABSENT = {
    Verdict.REMOVED: "gone",
    Verdict.NOT_APPLICABLE: "n/a",
    Verdict.NOT_RUN: "not run",
}


def happened(digest: Digest | None) -> str:
    """ "returns", "raises ValueError", "hangs"; empty where nothing was observed."""
    if digest is None:
        return ""
    if digest.died is not None:
        return "crashes" if digest.died.kind == _CRASHED else "hangs"
    steps = [step for _, step in digest.steps() if step.name != _WITHOUT_THE_FIX]
    raised = [step for step in steps if step.outcome == RAISED]
    if raised:
        # Processes may differ: what one of them raised is what ends a user's program.
        return _raised(raised[0], steps)
    if any(code in _WRONG for step in steps for code, _, _ in step.failed):
        return "other numbers"
    return "returns" if steps else ""


def _raised(step: Step, steps: list[Step]) -> str:
    before = [one for one in steps if one.outcome != RAISED]
    later = before and steps[0].outcome != RAISED and step.name.endswith(("second call", " again"))
    return f"raises {step.error}{', second call' if later else ''}"
