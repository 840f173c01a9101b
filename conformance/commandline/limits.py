"""Parse numbers and addresses of a command line: finite and within bounds, else refused in one
line.

Every function is the `type` of an option, for argparse and pytest alike, or returns one.
"""

from __future__ import annotations

import math
import re
import reprlib
from argparse import ArgumentTypeError
from collections.abc import Callable

MOST_SECONDS = 7 * 24 * 3600  # the system's waits take 24 days at most
MOST_PORT = 65535
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def seconds(text: str) -> float:
    """Parse a duration above 0."""
    return _seconds(text, "above 0", lambda value: value > 0)


def patience(text: str) -> float:
    """Parse a duration of at least 0, which means not to wait."""
    return _seconds(text, "from 0 on", lambda value: value >= 0)


def whole(least: int, most: int, why: str = "") -> Callable[[str], int]:
    """Return a type of whole numbers from `least` to `most`; `why` is added to its error
    message.
    """

    def number(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not least <= value <= most:
            reason = f", {why}" if why else ""
            raise ArgumentTypeError(
                f"{shown(text)}: give a whole number from {least} to {most}{reason}"
            )
        return value

    return number


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = _number(text)
    if value is None or not 0 <= value <= 1:
        raise ArgumentTypeError(f"{shown(text)}: give a number from 0 to 1")
    return value


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; ValueError says what to write."""
    host, _, port = text.rpartition(":")
    if not host or any(one.isspace() for one in host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise ValueError(f"{shown(text)}: write HOST:PORT, such as 10.0.0.1:7070")
    if int(port) > MOST_PORT:
        raise ValueError(f"{shown(text)}: give a port from 0 to {MOST_PORT}")
    return host, int(port)


def checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Return a type that keeps the text, and refuses what `parse` refuses with a ValueError."""

    def text_of(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error
        return text

    return text_of


address = checked(parse_address)  # as it was written


def shown(text: str) -> str:
    """Return a user's text quoted, short and without control characters."""
    return reprlib.repr(text)


def _seconds(text: str, which: str, fits: Callable[[float], bool]) -> float:
    value = _number(text)
    if value is None or not fits(value) or value > MOST_SECONDS:
        raise ArgumentTypeError(
            f"{shown(text)}: give a number of seconds {which}, at most {MOST_SECONDS}"
        )
    return value


def _number(text: str) -> float | None:
    """Parse a finite number; None if it is not one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
