"""Results files as every command reads them: their lines, and what no command accepts.

A file that cannot be used is one error: the file, the line, what is wrong and what to do. The last
line of a run that was interrupted has no end, and is no error.
"""

from __future__ import annotations

import functools
import io
import lzma
import os
import select
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

from conformance.model.codec import Decode, NoValue, Part, decode_json, decode_record
from conformance.model.records import AnyRecord
from conformance.store.errors import ResultsError

XZ = ".xz"

_BLOCK = 1 << 22  # bytes that are read at once
_WAIT_S = 1.0  # for a pipe, without looking whether a signal came
MOST_LINE = 1 << 28  # bytes of a line: the largest that was ever recorded has a hundredth


class Line(NamedTuple):
    """A line with its end, its number from 1 on, and the bytes of the file before it."""

    number: int
    offset: int
    text: bytes

    @property
    def whole(self) -> bool:
        """Return whether it ends: the last one of an interrupted run does not."""
        return self.text.endswith(b"\n")


def lines(file: Path) -> Iterator[Line]:
    """Yield the lines of a file, decompressed if its name says so; ResultsError names the file."""
    try:
        with lzma.open(file) if file.suffix == XZ else file.open("rb") as stream:
            offset = 0
            for number, text in enumerate(lines_ahead(stream), 1):
                yield Line(number, offset, text)
                offset += len(text)
    except (lzma.LZMAError, EOFError) as error:
        raise ResultsError(
            f"{file}: not a whole xz file: {str(error).rstrip('.')}; name an intact copy"
        ) from None
    except _LongLine as error:
        raise ResultsError(
            f"{file}: a line of more than {MOST_LINE >> 20} MiB, after {error} bytes; this is no "
            "results file"
        ) from None
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror or error}") from None


class _LongLine(Exception):
    """A line is longer than any that was recorded; after how many bytes."""


def lines_ahead(stream: IO[bytes], size: int = _BLOCK) -> Iterator[bytes]:
    """Yield the lines of a stream, of which another thread reads the next `block` bytes ahead."""
    rest = io.BytesIO()
    done = 0
    for block in _blocks(stream, size):
        first, *others = block.split(b"\n")
        rest.write(first)
        if rest.tell() > MOST_LINE:
            raise _LongLine(done)
        if not others:
            continue
        yield rest.getvalue() + b"\n"
        done += rest.tell()
        *whole, last = others
        for line in whole:
            yield line + b"\n"
        rest = io.BytesIO()
        rest.write(last)
    if rest.tell():
        yield rest.getvalue()


def _blocks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    if not _ends_soon(stream):
        while block := _as_it_comes(stream, size):
            yield block
        return
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(stream.read, size)
        while block := following.result():
            following = reader.submit(stream.read, size)
            yield block


def _as_it_comes(stream: IO[bytes], size: int) -> bytes:
    """Return what a pipe has, when it has something.

    Python handles a signal that comes just before a read after that read, so none may last long.
    """
    while not select.select([stream], [], [], _WAIT_S)[0]:
        pass
    return stream.read1(size)  # type: ignore[attr-defined, no-any-return]


def _ends_soon(stream: IO[bytes]) -> bool:
    """Return whether reading waits for nobody: a thread that waits for a pipe's writer cannot be
    ended.
    """
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # it is in memory
        return True


def records(
    file: Path,
    keep: Callable[[Line, bytes, Decode[Any]], Sequence[Any]] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[int, AnyRecord]]:
    """Yield each record of a file with its line number; ResultsError names what is invalid.

    `keep` makes of a long part of a cell what the cell has of it; by default it stays in memory.
    `note` is called with what a reader of the whole must know: a torn line, a verdict unknown here.
    """
    for line in lines(file):
        parts = Part if keep is None else functools.partial(keep, line)
        try:
            record = decode_record(line.text, parts, note)
        except NoValue as error:
            if not line.whole and not _is_json(line.text):
                note(f"line {line.number} is torn (interrupted run) and was dropped")
                return
            raise no_record(file, line.number, error) from None
        yield line.number, record


def _is_json(text: bytes) -> bool:
    try:
        decode_json(text)
    except NoValue:
        return False
    return True


def no_record(file: Path, number: int, error: Exception) -> ResultsError:
    """Return the error for a line that is no record; the caller raises it."""
    what = str(error) if isinstance(error, NoValue) else f"{type(error).__name__}: {error}"
    return ResultsError(f"{file}:{number}: not a record of a results file: {what}")
