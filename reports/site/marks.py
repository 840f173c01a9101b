"""The small mark that says whether a document was right.

It is apart from the effect on a reader's code: a documented error is right and still breaks code.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from reports.reading.verdicts import Verdict


class Mark(StrEnum):
    """Whether what the document says was seen; the value is the word for screen readers."""

    RIGHT = "right"
    PARTLY = "partly right"
    WRONG = "wrong"
    NOT_RUN = "not run"
    NONE = "does not apply"

    @property
    def sign(self) -> str:
        """One character, told apart by its shape alone."""
        return _SIGNS[self]

    @property
    def css(self) -> str:
        """The class that colours it in style.css."""
        return _CLASSES[self]


_SIGNS = {
    Mark.RIGHT: "✓",
    Mark.PARTLY: "◐",
    Mark.WRONG: "✗",
    Mark.NOT_RUN: "–",  # noqa: RUF001 (an en dash reads as "nothing" in a table)
    Mark.NONE: "·",
}
_CLASSES = {
    Mark.RIGHT: "m-right",
    Mark.PARTLY: "m-partly",
    Mark.WRONG: "m-wrong",
    Mark.NOT_RUN: "m-not-run",
    Mark.NONE: "m-none",
}
_OF_VERDICT = {
    Verdict.CONFORMS: Mark.RIGHT,
    Verdict.DEVIATES: Mark.WRONG,
    Verdict.KNOWN_DEVIATION: Mark.WRONG,
    Verdict.CRASHED: Mark.WRONG,
    Verdict.HUNG: Mark.WRONG,
    Verdict.FLAKY: Mark.PARTLY,
    Verdict.NOT_RUN: Mark.NOT_RUN,
    Verdict.REMOVED: Mark.NONE,
    Verdict.NOT_APPLICABLE: Mark.NONE,
}


def mark_of(verdict: Verdict) -> Mark:
    """The mark of one cell."""
    return _OF_VERDICT.get(verdict, Mark.NOT_RUN)


def together(marks: Iterable[Mark]) -> Mark:
    """The mark of several cells: what ran decides, and only what all say is said whole."""
    found = set(marks)
    ran = found & {Mark.RIGHT, Mark.PARTLY, Mark.WRONG}
    if len(ran) == 1:
        return ran.pop()
    if ran:
        return Mark.PARTLY
    return Mark.NOT_RUN if Mark.NOT_RUN in found else Mark.NONE
