"""The long parts of cells, left in a scratch file until a page asks for them.

What every process of a cell saw, and what was compared of it, is nine tenths of a results file. Of
a hundred thousand cells it would not fit into memory as objects, and each is looked at by a page or
two; so it is kept as it was written, and read when it is first iterated over.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from conformance.model.codec import Decode, NoValue, Part
from conformance.store.errors import ResultsError
from conformance.store.reading import XZ, Line

T = TypeVar("T")

_BUFFER = 1 << 20  # bytes
MOST_RECENT = 64  # parts that are kept as objects: a page looks at those of a clause again

COPIED = 1 << 26  # bytes of a file, of which parts are copied; a larger one is kept open


class Store:
    """The positions of the parts of the lines of one file; forked processes may read it too.

    A large file that was written to the disk as it is read is its own store. Parts of others are
    kept in a file without a name, which all of them share.
    """

    __slots__ = ("_original", "_recent", "_scratch", "file")

    def __init__(self, file: Path, scratch: Scratch) -> None:
        self.file = file
        self._scratch = scratch
        self._original = _opened(file)
        self._recent: OrderedDict[int, tuple[Any, ...]] = OrderedDict()

    def keep(self, part: bytes, line: Line) -> int:
        """Store a part of a line, and return its position."""
        at = -1 if self._original is None else line.text.find(part)
        return line.offset + at if at >= 0 else ~self._scratch.keep(part)

    def text(self, place: int, length: int) -> bytes:
        """A part as it was written."""
        if place < 0:
            return self._scratch.text(~place, length)
        assert self._original is not None
        # By place, as processes that were forked share the position in the file.
        return os.pread(self._original.fileno(), length, place)

    def values(self, place: int, length: int, decode: Decode[T], number: int) -> tuple[T, ...]:
        """The values of a part, a JSON list; ResultsError where they are not what they must be."""
        if place in self._recent:
            self._recent.move_to_end(place)
            return self._recent[place]
        try:
            values = tuple(decode(self.text(place, length)))
        except NoValue as error:
            raise ResultsError(f"{self.file}:{number}: {error}") from None
        self._recent[place] = values
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)
        return values


def _opened(file: Path) -> BinaryIO | None:
    """The file, where its parts can be read again in it and copies would be large."""
    try:
        known = file.stat()
        if file.suffix == XZ or not stat.S_ISREG(known.st_mode) or known.st_size < COPIED:
            return None
        return file.open("rb", buffering=0)
    except OSError:  # whoever reads its lines says so
        return None


class Scratch:
    """A file without a name that holds parts of lines; forked processes may read it too."""

    __slots__ = ("_file", "_length", "_written")

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 (it lives as long as its parts)
        self._length = 0
        self._written = True

    def keep(self, part: bytes) -> int:
        """Store a part, and return its position."""
        place = self._length
        try:
            self._file.write(part)
        except OSError as error:
            raise _not_kept(error) from None
        self._length += len(part)
        self._written = False
        return place

    def flush(self) -> None:
        """Write what is buffered; to be called before a process is forked."""
        if not self._written:
            try:
                self._file.flush()
            except OSError as error:
                raise _not_kept(error) from None
            self._written = True

    def text(self, offset: int, length: int) -> bytes:
        """A part as it was written."""
        self.flush()
        return os.pread(self._file.fileno(), length, offset)


def _not_kept(error: OSError) -> ResultsError:
    """Return an error of the file without a name, which says where it would be."""
    return ResultsError(
        f"{tempfile.gettempdir()}: {error.strerror}, for what is read; name another folder in "
        "TMPDIR"
    )


class Lazily(Part[T]):
    """A part of a cell that is left on the disk.

    `alike` is equal for lists of which readers need not look at more than one (`reading.alike`).
    """

    __slots__ = ("_alike", "_length", "_likeness", "_number", "_place", "_store")

    def __init__(
        self,
        store: Store,
        part: bytes,
        line: Line,
        decode: Decode[T],
        likeness: Callable[[bytes], bytes],
    ) -> None:
        super().__init__(b"", decode)
        self._likeness = likeness
        self._alike: bytes | None = None
        self._store = store
        self._number = line.number
        self._place = store.keep(part, line)
        self._length = len(part)

    def values(self) -> Sequence[T]:
        """Return what is in the list; ResultsError names the line where it is none."""
        return self._store.values(self._place, self._length, self._decode, self._number)

    @property
    def alike(self) -> bytes:
        """Return what `likeness` makes of the list's text, once a reader asks."""
        if self._alike is None:
            self._alike = self._likeness(self.text)
        return self._alike

    @alike.setter
    def alike(self, found: bytes) -> None:
        """Note what another process found."""
        self._alike = found

    @property
    def where(self) -> str:
        """The file and the line in which it was read."""
        return f"{self._store.file}:{self._number}"

    @property
    def text(self) -> bytes:
        """The list as it was written."""
        return self._store.text(self._place, self._length)
