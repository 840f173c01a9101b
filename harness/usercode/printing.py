"""Print the output of a job's processes line by line, each with its process's index."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

from conformance.store.outputs import make_folder

MOST_LINE = 64 * 1024  # bytes that are kept of a line that does not end
TAIL_LINES = 20  # of each process, that a report shows
_COLOURS = (36, 33, 35, 32, 34, 31)  # of the prefixes, by turns
# What the collectives' library prints whatever the program prints.
_NOISE = re.compile(rb"(\[Gloo\] Rank \d+ is connected to \d+ peer ranks\. [^\n]*: \d+\s*)+")


def wants_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal that shows colours, and NO_COLOR is not set."""
    dumb = environment.get("TERM") == "dumb"
    return stream.isatty() and not environment.get("NO_COLOR") and not dumb


@dataclass
class Lines:
    """One stream of one process: prints complete lines, prefixed by its process."""

    prefix: bytes
    stream: TextIO
    log: BinaryIO | None
    tail: list[bytes]
    _pending: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        """Print the lines that `data` completes."""
        if self.log is not None:
            self.log.write(data)
            self.log.flush()
        self._pending += data
        *whole, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        if len(rest) > MOST_LINE:
            whole.append(rest)
            self._pending.clear()
        for line in whole:
            self._print(line)

    def end(self) -> None:
        """Print an incomplete last line."""
        if self._pending:
            self._print(bytes(self._pending))
            self._pending.clear()

    def _print(self, line: bytes) -> None:
        if _NOISE.fullmatch(line):
            return
        self.tail.append(line)
        del self.tail[:-TAIL_LINES]
        text = (self.prefix + line).decode(errors="replace")
        self.stream.write(text + "\n")
        self.stream.flush()


class Printer:
    """Prints what `processes` processes write; with `folder`, also to `process-N.log` there.

    A log has both streams in order of arrival. OSError if the folder or a log cannot be written.
    """

    def __init__(
        self,
        processes: int,
        out: TextIO,
        err: TextIO,
        folder: Path | None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._logs: list[BinaryIO | None] = [None] * processes
        if folder is not None:
            make_folder(folder)
            self._logs = [(folder / f"process-{n}.log").open("wb") for n in range(processes)]
        tails: list[list[bytes]] = [[] for _ in range(processes)]
        wide = len(str(processes - 1))

        def lines(stream: TextIO) -> list[Lines]:
            colours = wants_colours(stream, environment)
            return [
                Lines(_prefix(n, wide, colours), stream, self._logs[n], tails[n])
                for n in range(processes)
            ]

        self.out, self.err = lines(out), lines(err)
        self._tails = tails

    def name_hosts(self, hosts: Sequence[str]) -> None:
        """Print the host of each process beside its number."""
        wide = max(map(len, hosts))
        for streams in (self.out, self.err):
            for one, host in zip(streams, hosts, strict=True):
                one.prefix = one.prefix.replace(b"]", f" {host:<{wide}}]".encode(), 1)

    def tail(self, process: int) -> str:
        """Return the last lines that a process printed."""
        return b"\n".join(self._tails[process]).decode(errors="replace")

    def close(self) -> None:
        """Print what is left, and close the logs."""
        for one in (*self.out, *self.err):
            one.end()
        for log in self._logs:
            if log is not None:
                log.close()


def _prefix(process: int, wide: int, colours: bool) -> bytes:
    text = f"[{process:>{wide}}]"
    if colours:
        text = f"\x1b[{_COLOURS[process % len(_COLOURS)]}m{text}\x1b[0m"
    return f"{text} ".encode()
