"""The base of all errors that a command answers with one line, and no traceback."""

from __future__ import annotations


class InputError(Exception):
    """A file or an option cannot be used; the message says which, why and what to do."""
