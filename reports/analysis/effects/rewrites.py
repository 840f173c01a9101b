"""Code edits for known issues, and how common the affected code is: `rewrites.toml`.

How common code is does not follow from a run, so it is written down; an edit is shown only if the
remedy of one of its known issues worked in that version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path

from conformance.model.tables import load_toml
from reports.analysis.effects.effect import Effect

FILE = Path(__file__).with_name("rewrites.toml")
MOST_SAID = 20  # words of a note: of a longer one, a page shows the first sentence at once


class Usage(StrEnum):
    """Who meets an issue, the most common first."""

    ORDINARY = "ordinary"
    COMMON = "common"
    UNUSUAL = "unusual"
    FAILURE = "failure"

    @property
    def rank(self) -> int:
        """A sort key: 0 is the most common."""
        return _RANKS[self]

    @property
    def words(self) -> str:
        """Return who meets it, in words."""
        return _WORDS[self]


_RANKS = {usage: place for place, usage in enumerate(Usage)}
_WORDS = {
    Usage.ORDINARY: "affects most programs with pmap",
    Usage.COMMON: "affects a feature that many programs use",
    Usage.UNUSUAL: "affects an unusual argument or call",
    Usage.FAILURE: "occurs only after a mistake, an error or a lost process",
}
_LIKELIHOOD = {
    Usage.ORDINARY: 8.0,
    Usage.COMMON: 4.0,
    Usage.UNUSUAL: 1.0,
    Usage.FAILURE: 0.5,
}
_SEVERITY = {
    Effect.CRASHES: 8.0,
    Effect.HANGS: 8.0,
    Effect.WRONG_NUMBERS: 8.0,
    Effect.RAISES: 5.0,
    Effect.MOVES_MORE: 3.0,
    Effect.NEEDS_MORE_MEMORY: 3.0,
    Effect.SLOWER: 3.0,
    Effect.OTHER_ERROR: 1.5,
    Effect.LIES_ELSEWHERE: 1.5,
    Effect.OTHER_OUTPUT: 1.0,
    Effect.WARNS: 1.0,
    Effect.TAKEN: 0.5,
}


class Place(StrEnum):
    """The part of a program in which an edit is made, in program order."""

    INPUTS = "making inputs"
    CALLING = "calling the map"
    OUTPUTS = "reading outputs"
    CHECKPOINTING = "checkpointing"
    LAUNCHING = "launching"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An edit as code: the lines before and after, for one or more known issues.

    With a `library`, the issues follow its versions, from `since` on, and not those of JAX; `says`
    is what changes there. With `switch` they concern programs that choose a pmap by its switch.
    """

    title: str
    place: Place
    usage: Usage
    causes: tuple[str, ...]
    before: str
    after: str
    note: str = ""
    library: str = ""
    since: str = ""
    says: str = ""
    switch: bool = False

    @property
    def noted(self) -> tuple[str, str]:
        """The note as a page shows it at once, and what it folds of a long one."""
        return first_said(self.note, MOST_SAID)


def first_said(text: str, most: int) -> tuple[str, str]:
    """Return a text and nothing, or its first sentence and the rest if it has over `most` words."""
    first, stop, rest = text.partition(". ")
    return (text, "") if len(text.split()) <= most or not stop else (f"{first}.", rest)


@dataclass(frozen=True)
class Rewrites:
    """All edits, and how common each known issue of the table is.

    `prelude` are the lines that precede an edit's when they run, `names` the same in a sentence.
    Of `output_only` no values are wrong; of `printed_wrong` a test sees only what was printed.
    """

    prelude: str
    edits: tuple[Rewrite, ...]
    usages: dict[str, Usage]
    output_only: frozenset[str] = field(default_factory=frozenset)
    printed_wrong: frozenset[str] = field(default_factory=frozenset)
    names: str = ""

    def library_of(self, cause: str) -> str:
        """Return the library on whose versions a known issue depends; empty if it is JAX's."""
        edit = self.by_cause.get(cause)
        return "" if edit is None else edit.library

    @cached_property
    def by_cause(self) -> dict[str, Rewrite]:
        """Return each known issue's edit."""
        return {cause: one for one in self.edits for cause in one.causes}


@lru_cache(maxsize=1)
def rewrites() -> Rewrites:
    """Return the table beside this module; KeyError or ValueError if it is invalid."""
    table = load_toml(FILE)
    edits = tuple(
        Rewrite(
            raw["title"],
            Place(raw["place"]),
            Usage(raw["usage"]),
            tuple(raw["causes"]),
            raw["before"].strip("\n"),
            raw["after"].strip("\n"),
            raw.get("note", ""),
            raw.get("library", ""),
            raw.get("since", ""),
            raw.get("says", ""),
            raw.get("switch", False),
        )
        for raw in table["edit"]
    )
    usages = {cause: one.usage for one in edits for cause in one.causes}
    for raw in table["issue"]:
        usages |= dict.fromkeys(raw["causes"], Usage(raw["usage"]))
    marked = {
        mark: frozenset(c for raw in table["issue"] if raw.get(mark) for c in raw["causes"])
        for mark in ("output_only", "printed_wrong")
    }
    return Rewrites(table["prelude"], edits, usages, names=table["names"], **marked)


def weight(effect: Effect, usage: Usage) -> float:
    """Return severity times likelihood, which orders every list of known issues, largest first."""
    return _SEVERITY.get(effect, 0.0) * _LIKELIHOOD[usage]
