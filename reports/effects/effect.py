"""The words for what a user feels between a baseline cell and another, the gravest first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What changed for a user's program; in the order of gravity."""

    CRASHES = "crashes"
    HANGS = "hangs"
    WRONG_NUMBERS = "wrong numbers"
    RAISES = "raises"
    OTHER_ERROR = "other error"
    MOVES_MORE = "moves more"
    NEEDS_MORE_MEMORY = "needs more memory"
    LIES_ELSEWHERE = "other placement"
    WARNS = "warns"
    TAKEN = "no longer refused"
    REPAIRED = "repaired"
    SAME = "same"
    NOT_MEASURED = "not measured"

    @property
    def gravity(self) -> int:
        """A sort key: 0 is the gravest."""
        return _GRAVITY[self]

    @property
    def css(self) -> str:
        """The class that colours it in style.css and gives it its shape."""
        return "e-" + self.value.replace(" ", "-")

    @property
    def meaning(self) -> str:
        """One line for the legend."""
        return _MEANINGS[self]


_GRAVITY = {effect: place for place, effect in enumerate(Effect)}

_MEANINGS = {
    Effect.CRASHES: "A process dies where it lived before.",
    Effect.HANGS: "A process does not come back where it did before.",
    Effect.WRONG_NUMBERS: "Other numbers, without an error or a warning.",
    Effect.RAISES: "An exception where there was none.",
    Effect.OTHER_ERROR: "An exception as before, but of another type.",
    Effect.MOVES_MORE: "The same numbers, but more is communicated, copied or compiled.",
    Effect.NEEDS_MORE_MEMORY: "The same numbers, but more memory is needed for them.",
    Effect.LIES_ELSEWHERE: "The same numbers, but on other devices, or bound to them.",
    Effect.WARNS: "The same, with a warning that there was not before.",
    Effect.TAKEN: "What was refused is taken without an error, though a refusal is expected.",
    Effect.REPAIRED: "What failed, was wrong or cost more does not any longer.",
    Effect.SAME: "The same for a user's program.",
    Effect.NOT_MEASURED: "Not run on both sides: nothing is known.",
}


@dataclass(frozen=True, slots=True)
class Felt:
    """An effect, what it looks like in one line, and in which step it shows.

    `shape` is equal wherever the same kind of thing happens: numbers and names are left out of it.
    `second_call` is whether the first call still goes well, `refused` whether it raised before.
    """

    effect: Effect
    sentence: str = ""
    step: str = ""
    shape: str = ""
    second_call: bool = False
    refused: bool = False


SAME = Felt(Effect.SAME)


def not_measured(why: str) -> Felt:
    """Nothing is known of the pair, and why."""
    return Felt(Effect.NOT_MEASURED, why, shape=why)
