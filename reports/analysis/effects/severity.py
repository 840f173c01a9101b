"""The severity of an untrue statement for code that relies on it, the most severe first.

Derived from what happens in the steps of cells that differ from their document, not from what was
expected. A cell that does better than documented is not severe.
"""

from __future__ import annotations

from enum import StrEnum

from reports.analysis.effects.derive import job_died
from reports.analysis.effects.digest import RAISED, RETURNED, Digest, Failed, Step
from reports.analysis.effects.effect import Effect
from reports.store.codes import COLLECTIVE, MEMORY, OF_VALUES, UNREAD, WITHOUT_THE_FIX


class Severity(StrEnum):
    """The severity of a wrong statement: what happens to a program that relies on it."""

    DIES = "crashes or hangs"
    WRONG_NUMBERS = "wrong values"
    FIX_FAILS = "the documented fix does not work"
    RAISES = "raises an undocumented error"
    COSTS = "communication or memory differs from the document"
    REST = "another difference"
    PLATFORM = "depends on the platform"

    @property
    def rank(self) -> int:
        """A sort key: 0 is the most severe."""
        return _RANK[self]

    @property
    def effect(self) -> str:
        """The effect that colours it on a page."""
        return _EFFECTS[self].value


_RANK = {severity: place for place, severity in enumerate(Severity)}
_EFFECTS = {
    Severity.DIES: Effect.CRASHES,
    Severity.WRONG_NUMBERS: Effect.WRONG_NUMBERS,
    Severity.FIX_FAILS: Effect.RAISES,
    Severity.RAISES: Effect.RAISES,
    Severity.COSTS: Effect.MOVES_MORE,
    Severity.REST: Effect.WARNS,
    Severity.PLATFORM: Effect.WARNS,
}


def severity_of(seen: Digest | None, *, fix: bool) -> Severity:
    """Return the severity of a cell that differs from its document; `fix` marks a remedy's
    cell.
    """
    if seen is None:
        return Severity.REST
    if seen.died is not None:
        return Severity.DIES
    steps = [step for _, step in seen.steps() if step.failed and step.name != WITHOUT_THE_FIX]
    found = {_of_step(step) for step in steps}
    if fix and steps:
        found.add(Severity.FIX_FAILS)
    return min(found, key=lambda one: one.rank, default=Severity.REST)


def _of_step(step: Step) -> Severity:
    if job_died(step) is not None:
        return Severity.DIES
    codes = {one.code for one in step.failed}
    if step.outcome == RAISED:
        announced = all(one.error_expected for one in step.failed)
        return Severity.REST if announced else Severity.RAISES
    if step.outcome == RETURNED and any(map(_other_numbers, step.failed)):
        return Severity.WRONG_NUMBERS
    return Severity.COSTS if codes & {COLLECTIVE, MEMORY} else Severity.REST


def _other_numbers(finding: Failed) -> bool:
    """Return whether a step returned wrong values, in place of the right ones or of an error.

    A step without values shows no wrong ones.
    """
    return (finding.code in OF_VALUES or bool(finding.mistake)) and finding.values != UNREAD
