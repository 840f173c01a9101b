"""Results files as every command reads them: their lines, and what no command accepts.

A file that cannot be used is one error: the file, the line, what is wrong and what to do. The last
line of a run that was interrupted has no end, and is no error.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import os
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

SCHEMA_VERSION = 1  # of what is written, and the newest that is read
KINDS = ("target", "claim", "clause", "cause", "cell", "strength", "timing", "growth")
XZ = ".xz"

_BLOCK = 1 << 22  # bytes that are read at once
MOST_LINE = 1 << 28  # bytes of a line: the largest that was ever recorded has a hundredth
MOST_DEEP = 254  # lists and objects in one another, as orjson writes them; recorded are some twenty
_TOO_DEEP = f"nested too deeply, more than {MOST_DEEP} times"
_MOST_DIGITS = 309  # of a number that a float can hold

Record = Mapping[str, Any]

_Types = tuple[type, ...]
_TEXT: _Types = (str,)
_TEXT_OR_NOTHING: _Types = (str, type(None))
_OBJECT: _Types = (dict,)
_LIST: _Types = (list,)
_NUMBER_OR_NOTHING: _Types = (float, int, type(None))

# What a record must have for any command to use it, and of which types.
_NEEDED: Mapping[str, Mapping[str, _Types]] = {
    "target": {
        "target": _TEXT,
        "jax": _TEXT_OR_NOTHING,
        "platform": _TEXT_OR_NOTHING,
        "run": _TEXT,
        "started": _TEXT,
    },
    "clause": {"clause": _TEXT, "source": _TEXT, "expected": _OBJECT},
    "cell": {
        "clause": _TEXT,
        "implementation": _TEXT,
        "target": _TEXT,
        "topology": _TEXT,
        "verdict": _TEXT,
        "reason": _TEXT,
        "findings": _LIST,
        "deviation": (dict, type(None)),
        "observations": _LIST,
        "fault": (dict, type(None)),
        "seconds": _NUMBER_OR_NOTHING,
    },
    "timing": dict.fromkeys(("timing", "contender", "implementation", "target", "topology"), _TEXT),
    "strength": {"clause": _TEXT},
    "growth": dict.fromkeys(("clause", "text", "implementation", "jax", "chip"), _TEXT),
}
# What it may have, and of which types then.
_POSSIBLE: Mapping[str, Mapping[str, _Types]] = {
    "target": {"packages": _OBJECT},
    "clause": {"parameters": _OBJECT, "cause": _TEXT},
    "cell": {
        "program": _TEXT,
        "resumed": _TEXT,
        "run_of": _TEXT,
        "cpu_seconds": _NUMBER_OR_NOTHING,
    },
}


class ResultsError(ValueError):
    """A results file cannot be used; the message names the file, the line and what is wrong."""


class NoValue(ValueError):
    """A text is no JSON, or none that can be used; the message says what is wrong with it."""


class Line(NamedTuple):
    """A line with its end, its number from 1 on, and the bytes of the file before it."""

    number: int
    offset: int
    text: bytes

    @property
    def whole(self) -> bool:
        """Whether it ends: the last one of an interrupted run does not."""
        return self.text.endswith(b"\n")


def lines(file: Path) -> Iterator[Line]:
    """The lines of a file, decompressed where its name says so; ResultsError names the file."""
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
    """The lines of a stream; while some are looked at, the next block is read by another thread."""
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
        while block := stream.read(size):
            yield block
        return
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(stream.read, size)
        while block := following.result():
            following = reader.submit(stream.read, size)
            yield block


def _ends_soon(stream: IO[bytes]) -> bool:
    """Whether reading waits for nobody: a thread that waits for a pipe's writer cannot be ended."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # it is in memory
        return True


def parsed(text: bytes) -> Any:
    """The value of a JSON text; NoValue where it is none, too deep, or holds what no float can.

    Messages hold what a program printed, half of a character as well, which only json reads.
    """
    try:
        value = orjson.loads(text)
    except ValueError:
        return _of_any_text(text)
    if len(text) > 2 * MOST_DEEP:
        try:
            orjson.dumps(value)  # the fastest look at how deep it is
        except TypeError:
            raise NoValue(_TOO_DEEP) from None
    return value


def _of_any_text(text: bytes) -> Any:
    try:
        value = json.loads(
            text.decode("utf-8"), parse_int=_whole, parse_float=_number, parse_constant=_constant
        )
        if _deeper(value, MOST_DEEP):
            raise NoValue(_TOO_DEEP)
    except RecursionError:
        raise NoValue(_TOO_DEEP) from None
    except NoValue:
        raise
    except ValueError:
        raise NoValue("not a line of JSON") from None
    return value


def _deeper(value: Any, most: int) -> bool:
    """Whether more than `most` lists and objects stand in one another."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(most + 1):
        inner = (one.values() if type(one) is dict else one for one in level)
        level = [one for some in inner for one in some if type(one) in (dict, list)]
        if not level:
            return False
    return True


def records(file: Path) -> Iterator[tuple[int, Record]]:
    """Every record of a file with the number of its line; ResultsError says what is wrong."""
    for line in lines(file):
        try:
            value = parsed(line.text)
        except NoValue as error:
            if not line.whole:
                return
            raise no_record(file, line.number, error) from None
        try:
            checked(value)
        except NoValue as error:
            raise no_record(file, line.number, error) from None
        yield line.number, value


def no_record(file: Path, number: int, error: Exception) -> ResultsError:
    """The error of a line that is no record, for whoever finds out."""
    what = str(error) if isinstance(error, NoValue) else f"{type(error).__name__}: {error}"
    return ResultsError(f"{file}:{number}: no record of a results file: {what}")


def checked(value: Any) -> str:
    """The kind of a record that a command can use; NoValue where it is none."""
    kind = known_kind(value)
    for needed, some in ((True, _NEEDED.get(kind)), (False, _POSSIBLE.get(kind))):
        for key, types in (some or {}).items():
            if key not in value:
                if needed:
                    raise NoValue(f"the {kind} record lacks {key!r}")
            elif type(value[key]) not in types:
                raise NoValue(f"the {kind} record: {key!r} is {_type_of(value[key])}")
    if kind == "target" and value["jax"] is not None and not _is_version(value["jax"]):
        raise NoValue(f"the target record: 'jax' is {value['jax'][:40]!r}, no version")
    return kind


def _is_version(text: str) -> bool:
    from packaging.version import InvalidVersion, Version  # of no use to reports

    try:
        Version(text)
    except (InvalidVersion, ValueError):  # the second of numbers of thousands of digits
        return False
    return True


def known_kind(value: Any) -> str:
    """The kind of a record of a schema that this program reads; NoValue where it is none."""
    if type(value) is not dict:
        raise NoValue("not an object")
    kind = value.get("kind")
    if type(kind) is not str or kind not in KINDS:
        raise NoValue(f"kind is {repr(kind)[:40]}, not one of: {', '.join(KINDS)}")
    if kind == "target":
        version = value.get("schema")
        if type(version) is int and version > SCHEMA_VERSION:
            raise NoValue(
                f"schema {version} is newer than {SCHEMA_VERSION}, the newest that this program "
                "reads: update it"
            )
    return kind


def _type_of(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS or not math.isfinite(float(text)):
        raise NoValue(f"a number of {len(text)} digits: no float can hold it")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NoValue(f"the number {text[:40]}: no float can hold it")
    return value


def _constant(text: str) -> float:
    raise NoValue(f"{text} is no number of JSON")
