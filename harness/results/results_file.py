"""The results file of a run: written by one run at a time, put in place with its first cell.

A run without cells leaves an earlier file as it was.
"""

from __future__ import annotations

import contextlib
import lzma
import os
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from conformance.model.codec import encode_record
from conformance.model.records import Record
from conformance.store.errors import ResultsError
from conformance.store.outputs import Output, make_folder, named
from conformance.store.reading import XZ


class ResultsFile:
    """A writer of JSON lines for `file`; ResultsError if another run is writing it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = _locked(file)
        self._output = Output(file, f".{file.name}.partial")
        self._stream = _stream(self._output, file)

    def write(self, record: Record) -> None:
        """Write a record as a line, and flush."""
        self.write_line(encode_record(record))

    def write_line(self, line: bytes) -> None:
        """Write a line that ends with a newline, and flush."""
        with named(self._file):
            self._stream.write(line)
            self._stream.flush()

    def put(self, *, keep: bool) -> Path | None:
        """Move the file into its place; return the new name of an earlier file if it is kept.

        A compressed file is finished by this.
        """
        if self._file.suffix == XZ:
            with named(self._file):
                self._stream.close()
        return self._output.put(keep=keep)

    def close(self) -> None:
        """Close the file; without `put`, remove it."""
        try:
            with contextlib.suppress(OSError):  # what was written is flushed
                self._stream.close()
            self._output.close()
        finally:
            if self._lock is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._lock.lock_file)
                self._lock.release()
                self._lock = None


def _locked(file: Path) -> FileLock | None:
    """Acquire the lock for writing a file; None if it is not a regular file, such as a pipe."""
    if file.exists() and not file.is_file():
        return None
    place = Path(os.path.realpath(file))
    with named(file):
        make_folder(place.parent)
        lock = FileLock(place.with_name(f".{place.name}.lock"), timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            raise ResultsError(
                f"{file}: another run is writing it: wait for its end, or name another file"
            ) from None
    return lock


def _stream(output: Output, file: Path) -> BinaryIO | lzma.LZMAFile:
    return lzma.LZMAFile(output.stream, "w") if file.suffix == XZ else output.stream
