"""The verdicts as a reader meets them: the word, a badge short enough for a matrix, one line each.

Kept apart from the code that judges, so that a results file can be read without it.
"""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How a cell ended; the value is the word in a results file."""

    CONFORMS = "conforms"
    DEVIATES = "deviates"
    KNOWN_DEVIATION = "known deviation"
    REMOVED = "removed"
    NOT_APPLICABLE = "not applicable"
    CRASHED = "crashed"
    HUNG = "hung"
    FLAKY = "flaky"
    NOT_RUN = "not run"
    LEFT_OUT = "left out"  # never recorded: of a run that takes each fact once
    UNKNOWN = "unknown"  # a newer program's word for how a cell ended

    @classmethod
    def _missing_(cls, value: object) -> Verdict:
        return cls.UNKNOWN

    @property
    def css(self) -> str:
        """The class that colours it in style.css."""
        return "v-" + self.value.replace(" ", "-")

    @property
    def badge(self) -> str:
        """At most five characters: thirty columns of them fit side by side."""
        return _BADGES[self]

    @property
    def meaning(self) -> str:
        """One line for the legend."""
        return _MEANINGS[self]


NEVER_RECORDED = (Verdict.LEFT_OUT, Verdict.UNKNOWN)
RECORDED = tuple(one for one in Verdict if one not in NEVER_RECORDED)

_BADGES = {
    Verdict.CONFORMS: "ok",
    Verdict.DEVIATES: "DEV",
    Verdict.KNOWN_DEVIATION: "known",
    Verdict.REMOVED: "gone",
    Verdict.NOT_APPLICABLE: "n/a",
    Verdict.CRASHED: "CRASH",
    Verdict.HUNG: "HUNG",
    Verdict.FLAKY: "flaky",
    Verdict.NOT_RUN: "–",  # noqa: RUF001 (an en dash reads as "nothing" in a table)
    Verdict.LEFT_OUT: "core",
    Verdict.UNKNOWN: "?",
}

_MEANINGS = {
    Verdict.CONFORMS: "Ran, and did what the clause expects, in every process.",
    Verdict.DEVIATES: "Ran, and did something else than the clause expects.",
    Verdict.KNOWN_DEVIATION: "Deviates as recorded before, with the reason and a link.",
    Verdict.REMOVED: "This JAX no longer has the implementation.",
    Verdict.NOT_APPLICABLE: "The clause has no meaning here; the cell says why.",
    Verdict.CRASHED: "A process died while the probe ran.",
    Verdict.HUNG: "A process did not finish before its deadline.",
    Verdict.FLAKY: "Failed at first and passed when run again alone, or differed between repeats.",
    Verdict.NOT_RUN: "No result: nothing is known about this cell.",
    Verdict.LEFT_OUT: "Not in the core tier, which shows each fact once; the full tier runs it.",
    Verdict.UNKNOWN: "A verdict that this program does not know; the reason says which.",
}
