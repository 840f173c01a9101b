"""Warnings and log records: which of them a clause or an entry expects.

By default every step of every clause is expected to emit nothing. An expectation that judges
emissions names them in `emits`; emissions that occur in many clauses are entries of
`sections/warnings.toml`. Any other warning or log record deviates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.spec.observation import Observation, Step

OF_WARNINGS, OF_LOGS = ("category", "message"), ("logger", "level", "message")
_MESSAGE = "message"

Emission = Mapping[str, Any]  # a recorded warning or log record


class EmissionError(ValueError):
    """An invalid table for a warning or log record; the message says why."""


@dataclass(frozen=True, slots=True)
class EmissionPattern:
    """A warning by `category` and `message`, or a log record by `logger`, `level` and `message`.

    Each is a regular expression: the message's is searched for, the others match the whole name.
    """

    fields: Mapping[str, str]

    def agrees(self, emission: Emission) -> bool:
        """Return whether a recorded warning or log record is what the pattern describes."""
        return all(
            key in emission
            and (re.search if key == _MESSAGE else re.fullmatch)(text, emission[key], re.DOTALL)
            for key, text in self.fields.items()
        )

    def __str__(self) -> str:
        return ", ".join(f"{key} {text}" for key, text in self.fields.items())


def emission_pattern(table: Any) -> EmissionPattern:
    """Parse a pattern from an entry's table; EmissionError says what is wrong with it."""
    if not isinstance(table, dict) or set(table) not in ({*OF_WARNINGS}, {*OF_LOGS}):
        raise EmissionError(
            f"a warning has {' and '.join(OF_WARNINGS)}, a log record {', '.join(OF_LOGS)}"
        )
    for text in table.values():
        if not isinstance(text, str) or re.compile(text).search(""):
            raise EmissionError(f"{text!r} matches every message: narrow it")
    return EmissionPattern(table)


def warning(category: str, message: str) -> EmissionPattern:
    """Return the pattern of a warning."""
    return EmissionPattern({"category": category, _MESSAGE: message})


def log_record(logger: str, level: str, message: str) -> EmissionPattern:
    """Return the pattern of a log record."""
    return EmissionPattern({"logger": logger, "level": level, _MESSAGE: message})


def emissions(observations: Sequence[Observation]) -> Iterator[tuple[Observation, Step, Emission]]:
    """Yield each warning and log record with its process's observation and its step.

    Those between the steps come last of each process.
    """
    for seen in observations:
        for step in (*seen.steps, *([seen.between] if seen.between else [])):
            for one in (*step.warnings, *step.logs):
                yield seen, step, one


def emission_text(emission: Emission) -> str:
    """Return a warning or log record in a line."""
    message = " ".join(str(emission.get(_MESSAGE, "")).split())
    if "category" in emission:
        return f"warned {emission['category']}: {message}"
    return f"logged {emission.get('level')} by {emission.get('logger')}: {message}"
