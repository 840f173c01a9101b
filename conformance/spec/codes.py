"""Codes of what a finding is about, for programs."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from conformance.spec.aspects import (
    COMMITTED,
    CONTAINER,
    DEVICES,
    DTYPE,
    EXCEPTION,
    LOGS,
    SHAPE,
    SHARDING_TYPE,
    SPEC,
    VALUES,
    WARNINGS,
    WEAK_TYPE,
    key_of,
)
from conformance.spec.observation import Step


class Code(StrEnum):
    """What was compared, or, for a failed finding, what differs."""

    VALUE = "value"
    SHAPE = "shape"
    CONTAINER = "container"  # a tuple, a list, a dict in place of another
    DTYPE = "dtype"
    WEAK_TYPE = "weak type"  # of the right dtype, but promoted otherwise
    SHARDING = "sharding"
    ERROR = "error"  # raised, another one, or none where one was expected
    BASES = "bases"  # the base classes of what is raised
    COLLECTIVE = "collective"
    MEMORY = "memory"
    MEMORY_KIND = "memory kind"  # in which memory of a device
    WARNING = "warning"
    DONATION = "donation"
    NOTE = "note"  # a figure that a probe noted, of no kind that has a word of its own
    ENDING = "ending"  # whether a step occurred, and the case came back
    PROOF = "proof"


class Values(StrEnum):
    """How the values compare of a step that returned although an error was expected."""

    RIGHT = "right"
    WRONG = "wrong"
    UNREAD = "unread"  # no process could read them


class Problem(str):
    """What is wrong: a line for readers, and fields for programs.

    `code` is the kind of problem; None leaves it to `code_of`. `beside` is that of a second problem
    of the same step. `mistake` names the known mistake whose values were seen, `values` says how
    they compare if an error was expected.
    """

    __slots__ = ("beside", "code", "mistake", "values")
    code: Code | None
    beside: Code | None
    mistake: str
    values: str

    def __new__(
        cls,
        text: str,
        code: Code | None = None,
        *,
        beside: Code | None = None,
        mistake: str = "",
        values: str = "",
    ) -> Problem:
        made = super().__new__(cls, text)
        made.code = code
        made.beside = beside
        made.mistake = mistake
        made.values = values
        return made

    def framed(self, before: str = "", after: str = "", *, values: str = "") -> Problem:
        """Return the same problem with text before and after."""
        text = f"{before}{self}{after}"
        return Problem(
            text,
            self.code,
            beside=self.beside,
            mistake=self.mistake,
            values=values or self.values,
        )


def mistaken(mistake: str, text: str, code: Code | None = None, *, values: str = "") -> Problem:
    """Return the problem that a step has the values of a known mistake; `text` shows them."""
    beside = text.beside if isinstance(text, Problem) else None
    return Problem(f"it is {mistake}: {text}", code, beside=beside, mistake=mistake, values=values)


_OF_ASPECT = {
    SHARDING_TYPE: Code.SHARDING,
    SPEC: Code.SHARDING,
    DEVICES: Code.SHARDING,
    COMMITTED: Code.SHARDING,
    WARNINGS: Code.WARNING,
    LOGS: Code.WARNING,
    WEAK_TYPE: Code.WEAK_TYPE,
}
_OF_FIGURE = {
    "moved": Code.COLLECTIVE,
    "programs": Code.COLLECTIVE,
    "memory": Code.MEMORY,
    "saved": Code.MEMORY,
    "peak": Code.MEMORY,
    "donated deleted": Code.DONATION,
    "kept deleted": Code.DONATION,
    "unharmed": Code.DONATION,
    "buffers reused": Code.DONATION,
    "bytes aliased": Code.DONATION,
    "given up": Code.DONATION,
    "gone": Code.DONATION,
    "warned": Code.WARNING,
}
_OF_RESULT = {
    VALUES: Code.VALUE,
    SHAPE: Code.SHAPE,
    DTYPE: Code.DTYPE,
    CONTAINER: Code.CONTAINER,
}


def figures_of(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the figures that findings of these codes are about, if any."""
    asked = set(codes)
    return tuple(sorted(name for name, code in _OF_FIGURE.items() if code in asked))


_OF_NO_FIGURE = {Code.ERROR, Code.BASES, Code.ENDING, Code.PROOF, *_OF_RESULT.values()}


def figure_of(claims: Iterable[str], code: str) -> str:
    """Return the key of the note that a finding of this code is about; empty if it is about none.

    An expectation judges one note at most, some of them beside a result.
    """
    keys = {name for aspect in claims if (name := key_of(aspect))}
    if not keys or code in _OF_NO_FIGURE:
        return ""
    (key,) = keys
    return key


def code_of(claims: Iterable[str], step: Step, holds: bool, saw: str) -> Code:
    """Return what a comparison was about: by the finding itself, else by how the step ended.

    An expectation about values and about something else reports a `Problem` that says which.
    """
    if isinstance(saw, Problem) and saw.code is not None:
        return saw.code
    asked = set(claims)
    if step.raised is not None and not (holds and EXCEPTION not in asked):
        return Code.ERROR
    figures = {key_of(aspect) for aspect in asked}
    found = [
        *(code for name, code in _OF_FIGURE.items() if name in figures),
        *(code for aspect, code in _OF_ASPECT.items() if aspect in asked),
    ]
    if found:
        return found[0]
    of_result = [code for aspect, code in _OF_RESULT.items() if aspect in asked]
    if any(aspect.startswith("figure ") for aspect in asked) or (of_result and EXCEPTION in asked):
        return Code.NOTE  # of several things one, and it is not said which
    if EXCEPTION in asked:
        return Code.ERROR
    return of_result[0] if of_result else Code.NOTE
