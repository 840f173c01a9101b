"""Progress lines for the user, printed at once, from any process of a run.

While an item runs, pytest captures output; but that a run waits for hosts must be visible before it
ends. So a session has its own way to the terminal.
"""

from __future__ import annotations

import os
from typing import Any, TextIO

import pytest

STDERR = 2


class ProgressReporter:
    """Prints progress lines past pytest's capturing; created before capturing begins.

    With `-n` the lines of a test process begin with its name, because all share a terminal.
    """

    def __init__(self, config: pytest.Config) -> None:
        process = getattr(config, "workerinput", {}).get("workerid")
        self._who = f"conformance: {process}: " if process else "conformance: "
        self._stream: TextIO = os.fdopen(os.dup(STDERR), "w", errors="backslashreplace")
        self._plugins = config.pluginmanager

    def __call__(self, text: str) -> None:
        """Print a line; a closed terminal is not an error."""
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
        """Print nothing from here on."""
        self._stream.close()
