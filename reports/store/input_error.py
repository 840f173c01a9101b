"""The base class of all errors that a command reports in one line, without a traceback."""

from __future__ import annotations


class InputError(Exception):
    """A file or an option cannot be used; the message says which, why and what to do."""
