"""The long parts of cells, left in a scratch file until a page asks for them.

What every process of a cell saw, and what was compared of it, is nine tenths of a results file. Of
a hundred thousand cells it would not fit into memory as objects, and each is looked at by a page or
two; so it is kept as it was written, and read when it is first iterated over.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

from reports.input_error import InputError
from reports.reading.parsing import parsed

T = TypeVar("T", covariant=True)

_BUFFER = 1 << 20  # bytes
MOST_RECENT = 64  # parts that are kept as objects: a page looks at those of a clause again

# Between which keys of a cell's line the long parts stand, as the recorder orders them. A quote
# inside a JSON string is escaped, so that no message can contain these.
LONG = ((b'"findings": ', b', "deviation": '), (b'"observations": ', b', "fault": '))


class ResultsError(InputError):
    """A results file cannot be used; the message names the file, the line and what is wrong."""


class Scratch:
    """A file without a name that holds parts of lines; forked processes may read it too."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 (it lives as long as its parts)
        self._length = 0
        self._written = True
        self._recent: OrderedDict[int, tuple[Any, ...]] = OrderedDict()

    def keep(self, part: bytes) -> tuple[int, int]:
        """Where a part now lies, and its length."""
        place = (self._length, len(part))
        self._file.write(part)
        self._length += len(part)
        self._written = False
        return place

    def flush(self) -> None:
        """Write what is buffered; to be called before a process is forked."""
        if not self._written:
            self._file.flush()
            self._written = True

    def text(self, offset: int, length: int) -> bytes:
        """A part as it was written."""
        self.flush()
        # By place, as processes that were forked share the position in the file.
        return os.pread(self._file.fileno(), length, offset)

    def values(
        self, offset: int, length: int, convert: Callable[[Any, str], T], where: str
    ) -> tuple[T, ...]:
        """The values of a part, a JSON list; ResultsError where they are not what they must be."""
        if offset in self._recent:
            self._recent.move_to_end(offset)
            return self._recent[offset]
        text = self.text(offset, length)
        try:
            values = tuple(convert(one, f"[{at}]") for at, one in enumerate(parsed(text)))
        except ValueError as error:
            raise ResultsError(f"{where}: {error}") from None
        self._recent[offset] = values
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)
        return values


class Lazily(Sequence[T]):
    """The values of a JSON list in a scratch file, read when they are asked for.

    `alike` is equal for lists of which readers need not look at more than one (`reading.alike`).
    """

    __slots__ = ("_alike", "_convert", "_length", "_likeness", "_offset", "_scratch", "_where")

    def __init__(
        self,
        scratch: Scratch,
        part: bytes,
        convert: Callable[[Any, str], T],
        where: str,
        likeness: Callable[[bytes], bytes],
    ) -> None:
        self._likeness = likeness
        self._alike: bytes | None = None
        self._scratch = scratch
        self._where = where
        self._offset, self._length = scratch.keep(part)
        self._convert = convert

    def _values(self) -> tuple[T, ...]:
        return self._scratch.values(self._offset, self._length, self._convert, self._where)

    @property
    def alike(self) -> bytes:
        """What `likeness` makes of the list's text, once a reader asks."""
        if self._alike is None:
            self._alike = self._likeness(self.text)
        return self._alike

    @property
    def text(self) -> bytes:
        """The list as it was written."""
        return self._scratch.text(self._offset, self._length)

    def __len__(self) -> int:
        return len(self._values())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return self._values()[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._offset, self._length))


def split(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """A cell's line without its findings and observations, and these two.

    None of a line that is no cell as the recorder writes it: then it is read whole.
    """
    if not line.startswith(b'{"kind": "cell"'):
        return None
    short, parts, done = b"", [], 0
    for begins, ends in LONG:
        start = line.find(begins, done) + len(begins)
        end = line.rfind(ends, done)
        part = line[start:end]
        if start < len(begins) or end < start or not _is_list_of_objects(part):
            return None
        parts.append(part)
        short += line[done:start] + b"[]"
        done = end
    return short + line[done:], parts[0], parts[1]


def _is_list_of_objects(part: bytes) -> bool:
    return part == b"[]" or (part.startswith(b'[{"') and part.endswith(b"}]"))
