"""The files that one worker writes: its output, and its Python stacks on request.

They are read by whoever shares its file system: the controller for processes of this machine, an
agent for those of its host.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from conformance.worker import deadlines

TAIL_BYTES = 4000  # of a log shown with a failure
STACK_BYTES = 16_000  # of all threads of a process
KEPT_LOG_BYTES = 1024 * 1024  # of a log between cases


@dataclass(frozen=True, slots=True)
class Evidence:
    """The last part of a worker's output since the case began, and of its stacks."""

    log: str = ""
    stacks: str = ""


class Output:
    """The two files of one worker; its process opens them by name and appends to the log."""

    def __init__(self, log: Path, stacks: Path) -> None:
        self.log = log
        self.stacks = stacks
        self._start = 0
        self._open: tuple[IO[bytes], ...] = ()

    @classmethod
    def without_names(cls) -> Output:
        """Create files without a name in any folder, which only forked processes can reach.

        Nothing of them is left on a host, however its agent ended.
        """
        log, stacks = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        made = cls(*(Path(f"/proc/self/fd/{file.fileno()}") for file in (log, stacks)))
        made._open = (log, stacks)
        return made

    def mark(self) -> None:
        """Mark the start of a case: later output belongs to it; a long log is emptied first."""
        self._start = size(self.log)
        if self._start > KEPT_LOG_BYTES:
            os.truncate(self.log, 0)
            self._start = 0

    def written(self) -> int:
        """Return the bytes of output since the case began."""
        return size(self.log) - self._start

    def evidence(self) -> Evidence:
        """Return the last part of both files."""
        return Evidence(tail(self.log, start=self._start), tail(self.stacks, STACK_BYTES))

    def close(self) -> None:
        """Close files without names; files with names belong to their folder's owner."""
        for file in self._open:
            file.close()


def await_stacks(outputs: Sequence[Output]) -> None:
    """Wait until the stacks have been written and no longer grow."""
    deadline = time.monotonic() + deadlines.STACK_S
    sizes: list[int] = []
    while time.monotonic() < deadline:
        time.sleep(0.05)
        before, sizes = sizes, [size(one.stacks) for one in outputs]
        if sizes == before and all(sizes):
            break


def size(file: Path) -> int:
    """Return a file's size in bytes; 0 if it does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def tail(file: Path, size: int = TAIL_BYTES, start: int = 0) -> str:
    """Return the end of a text file from `start` bytes on; empty if it does not exist."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(start, stream.tell() - size))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
