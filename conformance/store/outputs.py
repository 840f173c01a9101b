"""Files that commands write: created beside their place, and moved there when complete.

An interrupted or failed command leaves the earlier file unchanged and no temporary file.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

BACKUP = ".bak"  # what is added to the name of a file that makes room for another


class Output:
    """A file to write; `stream` takes its bytes, `put` moves it into its place.

    `partial` is its temporary name, by default a unique one. Anything but a regular file, such as
    /dev/null or a pipe, is written directly. OSError names `file`.
    """

    def __init__(self, file: Path, partial: str | None = None) -> None:
        self.file = file
        self._partial: Path | None = None
        self._cleaning: weakref.finalize[..., Output] | None = None
        with named(file):
            if file.exists() and not file.is_file():
                self.stream: BinaryIO = file.open("wb")
                return
            self._place = Path(os.path.realpath(file))  # of a link, the file that it names
            make_folder(self._place.parent)
            made = self._place.with_name(partial or f".{file.name}.{os.urandom(4).hex()}.partial")
            if partial is not None:  # what a killed process left
                made.unlink(missing_ok=True)
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            self.stream = os.fdopen(descriptor, "wb")
            self._partial = made
            # Also where the interpreter ends before anybody closes it.
            self._cleaning = weakref.finalize(self, _remove, made)

    def put(self, *, keep: bool = False) -> Path | None:
        """Move the file into its place, once; `stream` may still be written to afterwards.

        If `keep`, a non-empty file that it replaces is renamed; return that name.
        """
        if self._partial is None:
            return None  # it is there
        with named(self.file):
            if not self.stream.closed:
                self.stream.flush()
            kept = None
            if self._place.exists():
                self._partial.chmod(stat.S_IMODE(self._place.stat().st_mode))
                if keep and self._place.stat().st_size:
                    kept = _kept(self._place)
            self._partial.replace(self._place)
        if self._cleaning is not None:
            self._cleaning.detach()
        self._partial = None
        return kept

    def close(self) -> None:
        """Close the stream; without a `put` before, remove the file."""
        try:
            with named(self.file):
                self.stream.close()
        finally:
            if self._partial is not None and self._cleaning is not None:
                self._cleaning()


@contextlib.contextmanager
def written(file: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace `file` once all of them are written."""
    output = Output(file)
    try:
        yield output.stream
        output.put()
    finally:
        output.close()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if needed; OSError names the one that is not a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None


def write_text(file: Path, text: str) -> None:
    """Replace a file by `text`, whole or not at all; OSError names the file."""
    with written(file) as stream, named(file):
        stream.write(text.encode("utf-8"))


def _kept(place: Path) -> Path:
    """Give a file a second, free name: `NAME.bak`, else `NAME.bak2`, and so on."""
    for number in itertools.count(1):
        name = place.with_name(f"{place.name}{BACKUP}{number if number > 1 else ''}")
        if not os.path.lexists(name):
            try:
                os.link(place, name)
            except FileExistsError:
                continue
            except OSError:  # a file system without links
                place.rename(name)
            return name
    raise AssertionError


def _remove(partial: Path) -> None:
    partial.unlink(missing_ok=True)


@contextlib.contextmanager
def named(file: Path) -> Iterator[None]:
    """Make an OSError name the file that the user named."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(file)) from error
