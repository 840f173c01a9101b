"""The mark that says whether a document was right.

It is separate from the effect on a reader's code: a documented error is right and still breaks
code.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from conformance.model.verdicts import Verdict


class Mark(StrEnum):
    """Whether what the document says was seen; the value is the word for screen readers."""

    RIGHT = "right"
    PARTLY = "partly right"
    WRONG = "wrong"
    NOT_RUN = "not run"
    NONE = "does not apply"

    @property
    def sign(self) -> str:
        """One character, distinguishable by its shape."""
        return _SIGNS[self]

    @property
    def as_legacy(self) -> str:
        """The word for undocumented behaviour, for which legacy pmap is the reference."""
        return _AS_LEGACY[self]

    def word(self, silent: bool) -> str:
        """Return the word for documented or, if `silent`, for undocumented behaviour."""
        return self.as_legacy if silent else self.value

    @property
    def truth(self) -> str:
        """Return whether a statement with this mark is true, in words."""
        return _TRUTH[self]

    @property
    def neutral(self) -> bool:
        """Return whether it says neither that something is right nor that it is wrong."""
        return self in (Mark.NOT_RUN, Mark.NONE)

    @property
    def css(self) -> str:
        """The CSS class that colours it."""
        return _CLASSES[self]


CHECKED = frozenset((Mark.RIGHT, Mark.PARTLY, Mark.WRONG))  # of what was run


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
_AS_LEGACY = {
    Mark.RIGHT: "as legacy",
    Mark.PARTLY: "in part unlike legacy",
    Mark.WRONG: "unlike legacy",
    Mark.NOT_RUN: Mark.NOT_RUN.value,
    Mark.NONE: Mark.NONE.value,
}
_TRUTH = {
    Mark.RIGHT: "true",
    Mark.PARTLY: "not always true",
    Mark.WRONG: "untrue",
    Mark.NOT_RUN: "not checked",
    Mark.NONE: "does not apply",
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
    Verdict.LEFT_OUT: Mark.NONE,
}


def mark_of(verdict: Verdict) -> Mark:
    """Return the mark of one cell."""
    return _OF_VERDICT.get(verdict, Mark.NOT_RUN)


def together(marks: Iterable[Mark]) -> Mark:
    """Return the mark of several cells: only those that ran count, and `yes` needs all of them."""
    found = set(marks)
    ran = found & CHECKED
    if len(ran) == 1:
        return ran.pop()
    if ran:
        return Mark.PARTLY
    return Mark.NOT_RUN if Mark.NOT_RUN in found else Mark.NONE
