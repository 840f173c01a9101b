"""The kinds of effect between a baseline cell and another, the most severe first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What changed for a user's program, in the order of severity."""

    CRASHES = "crashes"
    HANGS = "hangs"
    WRONG_NUMBERS = "wrong numbers"
    RAISES = "raises"
    OTHER_ERROR = "other error"
    MOVES_MORE = "moves more"
    NEEDS_MORE_MEMORY = "needs more memory"
    SLOWER = "slower calls"
    LIES_ELSEWHERE = "other placement"
    OTHER_OUTPUT = "other output"
    WARNS = "warns"
    TAKEN = "no longer refused"
    REPAIRED = "repaired"
    SAME = "same"
    NOT_MEASURED = "not measured"

    @property
    def rank(self) -> int:
        """A sort key: 0 is the most severe."""
        return _RANK[self]

    @property
    def css(self) -> str:
        """The CSS class that gives it a colour and a shape."""
        return "e-" + self.value.replace(" ", "-")

    @property
    def words(self) -> str:
        """The effect's name on pages and the terminal."""
        return _WORDS[self]

    @property
    def meaning(self) -> str:
        """One line for the legend."""
        return _MEANINGS[self]


# What a program meets that ran before and is no longer the same, the most severe first.
DIFFERENCES = (
    Effect.CRASHES,
    Effect.HANGS,
    Effect.WRONG_NUMBERS,
    Effect.RAISES,
    Effect.OTHER_ERROR,
    Effect.MOVES_MORE,
    Effect.NEEDS_MORE_MEMORY,
    Effect.SLOWER,
    Effect.LIES_ELSEWHERE,
    Effect.WARNS,
)

SEVERE = (Effect.CRASHES, Effect.HANGS, Effect.WRONG_NUMBERS)

_RANK = {effect: place for place, effect in enumerate(Effect)}

_WORDS = {
    Effect.CRASHES: "crash",
    Effect.HANGS: "hang",
    Effect.WRONG_NUMBERS: "wrong values",
    Effect.RAISES: "error",
    Effect.OTHER_ERROR: "other error",
    Effect.MOVES_MORE: "extra communication",
    Effect.NEEDS_MORE_MEMORY: "extra memory",
    Effect.SLOWER: "slower calls",
    Effect.LIES_ELSEWHERE: "different sharding",
    Effect.OTHER_OUTPUT: "different output",
    Effect.WARNS: "warning",
    Effect.TAKEN: "error not raised",
    Effect.REPAIRED: "fixed",
    Effect.SAME: "same",
    Effect.NOT_MEASURED: "not tested",
}

_MEANINGS = {
    Effect.CRASHES: "A process dies.",
    Effect.HANGS: "A process does not return.",
    Effect.WRONG_NUMBERS: "Other values, without an error or a warning.",
    Effect.RAISES: "An exception, or an exit status that is not 0, where there was none.",
    Effect.OTHER_ERROR: "An exception as before, but another one.",
    Effect.MOVES_MORE: "The same values, with more communication or copies.",
    Effect.NEEDS_MORE_MEMORY: "The same values, with more memory.",
    Effect.SLOWER: "The same values, with more Python or compilation in each call.",
    Effect.LIES_ELSEWHERE: "The same values, on other devices or committed to them.",
    Effect.OTHER_OUTPUT: "The same values, but printed, compared or promoted differently.",
    Effect.WARNS: "The same result, but a warning is new or is no longer given.",
    Effect.TAKEN: "A call that raised an error, or that JAX documents as raising, now succeeds.",
    Effect.REPAIRED: "A failure, a wrong value or a cost is gone.",
    Effect.SAME: "The same result.",
    Effect.NOT_MEASURED: "One side has no result: the test was not run, the implementation is not "
    "in this version, or the test does not apply to it.",
}


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """An effect, its description in a line, and the step in which it shows.

    `shape` is equal for effects of the same kind: numbers and names are left out. `second_call` is
    whether the first call still succeeds, `refused` whether it raised before.
    """

    effect: Effect
    sentence: str = ""
    step: str = ""
    shape: str = ""
    second_call: bool = False
    refused: bool = False


SAME = ShownEffect(Effect.SAME)


def not_measured(why: str) -> ShownEffect:
    """Return that a pair was not measured, and why."""
    return ShownEffect(Effect.NOT_MEASURED, why, shape=why)
