"""The small mark that says whether a document was right, for a cell and for strips of versions.

It is apart from the effect on a reader's code: a documented error is right and still breaks code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

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


@dataclass(frozen=True, slots=True)
class Strip:
    """A mark per version for one implementation on one topology, equal neighbours joined."""

    implementation: str
    topology: str
    runs: tuple[tuple[Mark, int], ...]
    says: str

    @property
    def gravity(self) -> tuple[int, int]:
        """How wrong it is, and how much of it ran: sorts the worst first when negated."""
        counted = dict.fromkeys(Mark, 0)
        for mark, times in self.runs:
            counted[mark] += times
        wrong = 2 * counted[Mark.WRONG] + counted[Mark.PARTLY]
        return wrong, counted[Mark.RIGHT]


def strip(
    implementation: str, topology: str, marks: Sequence[Mark], versions: Sequence[str]
) -> Strip:
    """The strip of `marks`, one for each of `versions`."""
    runs, words, at = [], [], 0
    for mark, some in groupby(marks):
        times = len(list(some))
        runs.append((mark, times))
        words.append(f"{mark.value} {span(versions[at : at + times])}")
        at += times
    return Strip(implementation, topology, tuple(runs), "; ".join(words))


def span(versions: Sequence[str]) -> str:
    """Neighbouring versions in words: "0.9.0", "0.9.0 to 0.9.2"."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def ranges(versions: Sequence[str], holds: Iterable[str]) -> str:
    """Those of `versions` that `holds` names, neighbours as ranges: "0.7.2, 0.9.0 to 0.9.2"."""
    held = set(holds)
    groups = groupby(versions, key=held.__contains__)
    return ", ".join(span(list(some)) for inside, some in groups if inside)
