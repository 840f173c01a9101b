"""Lines of progress for the user: at once, in whichever process of a run they are said.

While an item runs, pytest keeps what is written for the case that it fails; that a run waits for
hosts is of use before. So a session has a way of its own to the terminal.
"""

from __future__ import annotations

import os
from typing import Any, TextIO

import pytest

STDERR = 2


class Teller:
    """Says lines of progress past what pytest captures; made before it captures anything.

    With `-n` the lines of a test process begin with its name, as all share the controller's
    terminal.
    """

    def __init__(self, config: pytest.Config) -> None:
        process = getattr(config, "workerinput", {}).get("workerid")
        self._who = f"conformance: {process}: " if process else "conformance: "
        self._stream: TextIO = os.fdopen(os.dup(STDERR), "w", errors="backslashreplace")
        self._plugins = config.pluginmanager

    def __call__(self, text: str) -> None:
        """Say it on a line of its own; a terminal that is gone is no reason to fail."""
        reporter: Any = self._plugins.getplugin("terminalreporter")
        if self._stream.closed:
            return
        # While an item runs, the reporter's own writing is kept as well.
        begun = "\n" if reporter is not None and reporter.currentfspath else ""
        try:
            self._stream.write(f"{begun}{self._who}{text}\n")
            self._stream.flush()
        except OSError:
            return

    def close(self) -> None:
        """Say no more."""
        self._stream.close()
