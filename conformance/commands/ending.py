"""How a command ends that its user ends."""

from __future__ import annotations

import sys
from collections.abc import Callable

EXIT_INTERRUPTED = 130  # as a shell tells of SIGINT


def without_traceback(command: Callable[[], int]) -> int:
    """The command's exit status; of one that Ctrl-C ends, a line in place of a traceback."""
    try:
        return command()
    except KeyboardInterrupt:
        print("interrupted: what was not finished is not written", file=sys.stderr)
        return EXIT_INTERRUPTED
