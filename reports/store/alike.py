"""Which cells were recorded alike, known from their text as it is read.

Most cells of one clause did in every version what they did in the one before. What all pages ask of
such cells is asked once: what tells their records apart, durations, frames and what a process
recorded beside its steps, is nothing that any page compares.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from conformance.model.records import Cell, Finding
from reports.store.lazily import Lazily

T = TypeVar("T")

Each = Callable[[Callable[[int], tuple[Any, ...]], int], Iterator[tuple[Any, ...]]]

ALL_HOLD = b""  # the likeness of findings none of which failed: what they are is not compared

# A quote inside a JSON string is escaped, so that no message can contain these. One expression for
# all would have no literal beginning, and would be tried at each quote.
_SECONDS = re.compile(rb'"seconds": ?[\d.e+-]+')
_FRAMES = re.compile(rb'"frames": ?\[[^\]\\]*\]')
_JAX = re.compile(rb'"jax": ?"[^"\\]*"')
_FAILS = (b'"holds": false', b'"holds":false')
_DIGEST_BYTES = 16


class _Seen(msgspec.Struct):
    """What one process saw that is compared: the steps. Nothing of it is read yet."""

    process: msgspec.Raw = msgspec.Raw(b"")
    steps: msgspec.Raw = msgspec.Raw(b"")


_SEEN = msgspec.json.Decoder(list[_Seen])


def of_observations(part: bytes) -> bytes:
    """Return what is equal of two cells whose processes took the same steps."""
    try:
        seen = _SEEN.decode(part)
    except (ValueError, RecursionError):  # it is of another form: whoever reads it says so
        some = _JAX.sub(b"", part)
    else:
        some = b"\n".join([text for one in seen for text in (one.process, one.steps)])
    some = _SECONDS.sub(b"", some)
    return _digest(_FRAMES.sub(b"", some) if b'"frames"' in some else some)


def of_findings(part: bytes) -> bytes:
    """Return what is equal of two cells of which the same is wrong."""
    return _digest(part) if any(one in part for one in _FAILS) else ALL_HOLD


def failed(cell: Cell) -> tuple[Finding, ...]:
    """The findings of a cell that do not hold."""
    if isinstance(cell.findings, Lazily) and cell.findings.alike == ALL_HOLD:
        return ()
    return tuple(one for one in cell.findings if not one.holds)


class Once:
    """Questions about cells, asked once of all that were recorded alike.

    All are asked when a cell is first read, as reading it costs more than any of them. An answer
    may depend on the steps of each process, on the findings that failed and on the verdict. Equal
    answers to the question `shared` are one object.
    """

    __slots__ = ("_known", "_one_of", "_questions", "_shared")

    def __init__(
        self, *questions: Callable[[Cell], Any], shared: Callable[[Cell], Hashable] | None = None
    ) -> None:
        self._questions = questions
        self._shared = None if shared is None else questions.index(shared)
        self._one_of: dict[Hashable, Hashable] = {}
        self._known: dict[Hashable, tuple[Any, ...]] = {}

    def to(self, question: Callable[[Cell], T]) -> Callable[[Cell], T]:
        """The answers to one of the questions, by cell."""
        at = self._questions.index(question)

        def answer(cell: Cell) -> T:
            found: T = self._answers(cell)[at]
            return found

        return answer

    def ask(self, cells: Iterable[Cell], each: Each) -> None:
        """Ask all questions of `cells` now; `each` does what is to be done of 0, 1, ..., in order.

        It may do so on several cores, which is what this is for.
        """
        every = list(cells)
        long = [part for cell in every for part in _long_parts(cell)]
        for part, (alike,) in zip(long, each(lambda at: (long[at].alike,), len(long)), strict=True):
            part.alike = alike
        new = {key: cell for cell in every if (key := likeness(cell)) is not None}
        some = [cell for key, cell in new.items() if key not in self._known]
        answered = each(lambda at: tuple(ask(some[at]) for ask in self._questions), len(some))
        for cell, answers in zip(some, answered, strict=True):
            self._known[likeness(cell)] = self._kept(answers)

    def _answers(self, cell: Cell) -> tuple[Any, ...]:
        key = likeness(cell)
        if key is None or key not in self._known:
            answers = self._kept(tuple(ask(cell) for ask in self._questions))
            if key is None:
                return answers
            self._known[key] = answers
        return self._known[key]

    def _kept(self, answers: tuple[Any, ...]) -> tuple[Any, ...]:
        if (at := self._shared) is None:
            return answers
        one = self._one_of.setdefault(answers[at], answers[at])
        return (*answers[:at], one, *answers[at + 1 :])


def likeness(cell: Cell) -> Hashable:
    """Return the fingerprint that equally recorded cells share; None for a cell without one."""
    if not (parts := _long_parts(cell)):
        return None
    observations, findings = parts
    return observations.alike, findings.alike, cell.verdict


def _long_parts(cell: Cell) -> tuple[Lazily[Any], ...]:
    """Return the observations and the findings; nothing of a cell without a fingerprint."""
    observations, findings = cell.observations, cell.findings
    if cell.fault or not (isinstance(observations, Lazily) and isinstance(findings, Lazily)):
        return ()
    return observations, findings


def _digest(part: bytes) -> bytes:
    return hashlib.blake2b(part, digest_size=_DIGEST_BYTES).digest()
