"""What one worker writes: its output, and its Python stacks when it is asked for them.

Read by whoever shares its file system: the controller for processes of this machine, a host's
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

from harness.clusters import deadlines

TAIL_BYTES = 4000  # of a log shown with a failure
STACK_BYTES = 16_000  # of all threads of a process
KEPT_LOG_BYTES = 1024 * 1024  # of a log between cases


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ends of what a worker wrote: of its log since the case began, and of its stacks."""

    log: str = ""
    stacks: str = ""


class Output:
    """The two files of one worker; its process opens them by name, and appends to the log."""

    def __init__(self, log: Path, stacks: Path) -> None:
        self.log = log
        self.stacks = stacks
        self._start = 0
        self._open: tuple[IO[bytes], ...] = ()

    @classmethod
    def without_names(cls) -> Output:
        """Files that no folder lists, which end with their last user; only its forks reach them.

        So nothing of them is left on a host, however its agent ended.
        """
        log, stacks = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        made = cls(*(Path(f"/proc/self/fd/{file.fileno()}") for file in (log, stacks)))
        made._open = (log, stacks)
        return made

    def mark(self) -> None:
        """A case begins: the output from here on is its own; a long log is emptied first."""
        self._start = size(self.log)
        if self._start > KEPT_LOG_BYTES:
            os.truncate(self.log, 0)
            self._start = 0

    def written(self) -> int:
        """Bytes of output since the case began."""
        return size(self.log) - self._start

    def evidence(self) -> Evidence:
        """The ends of both files."""
        return Evidence(tail(self.log, start=self._start), tail(self.stacks, STACK_BYTES))

    def close(self) -> None:
        """Let go of files without names; those with names are their folder's owner's."""
        for file in self._open:
            file.close()


def await_stacks(outputs: Sequence[Output]) -> None:
    """Wait until the stacks are written and grow no more."""
    deadline = time.monotonic() + deadlines.STACK_S
    sizes: list[int] = []
    while time.monotonic() < deadline:
        time.sleep(0.05)
        before, sizes = sizes, [size(one.stacks) for one in outputs]
        if sizes == before and all(sizes):
            break


def size(file: Path) -> int:
    """In bytes; 0 where there is no such file."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def tail(file: Path, size: int = TAIL_BYTES, start: int = 0) -> str:
    """The end of a text file, nothing of it before `start` bytes; empty where there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(start, stream.tell() - size))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
