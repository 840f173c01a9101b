"""Suggestions for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST = 5
LIKE = 0.5  # of 1, which is equal


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the end of an error message: names with the same ending, a similar spelling, or
    containing `word`.
    """
    known = list(names)
    found = [one for one in known if one.endswith(f".{word}")]
    found = found or difflib.get_close_matches(word, known, MOST, cutoff=LIKE)
    found = found or [one for one in known if word in one]
    return f"; did you mean {', '.join(found[:MOST])}?" if found else ""
