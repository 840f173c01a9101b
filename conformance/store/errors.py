"""The error of a results file, apart from what reads one: a host of an agent has no msgspec."""

from __future__ import annotations


class ResultsError(ValueError):
    """A results file cannot be used; the message names the file, the line and what is wrong."""
