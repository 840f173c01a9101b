"""Records as lines of JSON, read and written.

Nearly every line is read by msgspec alone. One that it refuses is read again with care: what is
wrong with it is said in words, and what only Python's own parser reads is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, TypeAlias, TypeVar, overload

import msgspec
from msgspec.structs import force_setattr

from conformance.model.records import (
    KINDS,
    SCHEMA_VERSION,
    AnyRecord,
    Cause,
    Cell,
    CellLine,
    Claim,
    Clause,
    Finding,
    Growth,
    Record,
    Strength,
    Target,
    Timing,
)
from conformance.model.verdicts import NEVER_RECORDED, Verdict

MOST_DEEP = 254  # lists and objects in one another; recorded are some twenty
_MOST_DIGITS = 309  # of a number that a float can hold
_MOST_SHOWN = 300  # characters of what is wrong with a record
_TOO_DEEP = f"nested too deeply, more than {MOST_DEEP} times"

_REPEATED = ("clause", "implementation", "target", "topology", "reason", "run_of", "program")

_LINE = msgspec.json.Decoder(
    Target | Claim | Clause | Cause | CellLine | Strength | Timing | Growth
)
_ANY = msgspec.json.Decoder()
_FINDINGS = msgspec.json.Decoder(list[Finding])

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_STRING = re.compile(rb'"[^"]*"')

T = TypeVar("T")
Decode: TypeAlias = Callable[[bytes], Sequence[T]]
Keep: TypeAlias = Callable[[bytes, Decode[Any]], Sequence[Any]]


class NoValue(ValueError):
    """A text is no JSON, or no record; the message says what is wrong with it."""


class Part(Sequence[T]):
    """A list in a record that stays text, and is read each time that it is asked for."""

    __slots__ = ("_decode", "_text")

    def __init__(self, text: bytes, decode: Decode[T]) -> None:
        self._text = text
        self._decode = decode

    @property
    def text(self) -> bytes:
        """The list as it was written."""
        return self._text

    def values(self) -> Sequence[T]:
        """Return what is in the list; NoValue says why it is none."""
        return self._decode(self.text)

    def __len__(self) -> int:
        return len(self.values())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return self.values()[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self.text)


# Reading


def decode_record(
    text: bytes, keep: Keep = Part, note: Callable[[str], None] = lambda _: None
) -> AnyRecord:
    """Return the record of a line; NoValue says why it is none.

    `keep` makes of each long part of a cell, and of what reads it, the sequence that the cell has.
    `note` is called with what a reader of the whole file must know.
    """
    record: AnyRecord
    try:
        record = _LINE.decode(text)
    except (ValueError, RecursionError):
        record = _with_care(decode_with_care(text))
    if isinstance(record, CellLine):
        _take_parts(record, text, keep, note)
    elif not _within_bounds(text):
        decode_with_care(text)
    return record


def decode_findings(text: bytes) -> Sequence[Finding]:
    """Return the findings of a cell; NoValue says why they are none."""
    try:
        return _FINDINGS.decode(text)
    except (ValueError, RecursionError):
        value = decode_with_care(text)
    some: list[Finding] = converted(value, list[Finding], "the cell record's findings")
    return some


def decode_observations(text: bytes) -> Sequence[Mapping[str, Any]]:
    """Return what the processes of a cell saw; NoValue says why it is none."""
    value = decode_json(text)
    some: list[dict[str, Any]] = converted(
        value, list[dict[str, Any]], "the cell record's observations"
    )
    return some


def decode_json(text: bytes) -> Any:
    """Return the value of a JSON text.

    NoValue where it is none, too deep, or holds a number that no float can.
    """
    try:
        value = _ANY.decode(text)
    except (ValueError, RecursionError):
        return decode_with_care(text)
    return value if _within_bounds(text) else decode_with_care(text)


def decode_with_care(text: bytes) -> Any:
    """Decode JSON with Python's own parser, the only one that reads half of a character."""
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


def converted(value: Any, cls: Any, what: str) -> Any:
    """Return a value of JSON as a `cls`; NoValue says of `what` why it is none."""
    try:
        return msgspec.convert(value, cls)
    except UnicodeEncodeError:
        raise NoValue(f"{what}: a key with an unpaired surrogate") from None
    except msgspec.ValidationError as error:
        shown = "".join(one if one.isprintable() else "�" for one in str(error))
        raise NoValue(f"{what}: {shown[:_MOST_SHOWN]}") from None


def _take_parts(cell: CellLine, text: bytes, keep: Keep, note: Callable[[str], None]) -> None:
    """Complete a cell whose long parts are still JSON."""
    for name, decode in LONG.items():
        part = bytes(getattr(cell, name))
        if not part.startswith(b"["):
            raise NoValue(f"the cell record: Expected `array` - at `$.{name}`")
        force_setattr(cell, name, keep(part, decode))
    for name in _REPEATED:
        force_setattr(cell, name, intern(getattr(cell, name)))
    if cell.again is not None and not _within_bounds(text):
        decode_with_care(text)
    if cell.verdict in NEVER_RECORDED:
        # A newer program may know it, so it is shown.
        word = decode_json(text)["verdict"]
        note(f"the verdict {word!r} is not known to this program")
        force_setattr(cell, "reason", f"{word}: {cell.reason}")
        force_setattr(cell, "verdict", Verdict.UNKNOWN)


LONG: Mapping[str, Decode[Any]] = {
    "findings": decode_findings,
    "observations": decode_observations,
}


def _with_care(value: Any) -> Any:
    kind = _known_kind(value)
    record = converted(value, KINDS[kind], f"the {kind} record")
    if kind != "cell":
        return record
    parts = {name: msgspec.Raw(json.dumps(value[name]).encode()) for name in LONG}
    return CellLine(**{name: getattr(record, name) for name in Cell.__struct_fields__} | parts)


def _known_kind(value: Any) -> str:
    """Return the kind of a record whose schema this program reads."""
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


def _within_bounds(text: bytes) -> bool:
    """Return whether a JSON text is surely no deeper than MOST_DEEP, with numbers that a float can
    hold.

    What is in a string counts as a number as well, so that a False means nothing.
    """
    if len(text) > _MOST_DIGITS and b"0" * _MOST_DIGITS in text.translate(_ZEROS):
        return False
    if len(text) <= 2 * MOST_DEEP:
        return True
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = text.translate(_BRACKETS, _NO_BRACKETS).replace(b'""', b"")  # nearly all strings
    if b'"' in rest:
        rest = _STRING.sub(b"", rest)
    for _ in range(MOST_DEEP):
        if not rest:
            return True
        rest = rest.replace(b"[]", b"")
    return not rest


def _deeper(value: Any, most: int) -> bool:
    """Return whether lists and objects are nested more than `most` levels deep."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(most):
        inner = (one.values() if type(one) is dict else one for one in level)
        level = [one for some in inner for one in some if type(one) in (dict, list)]
        if not level:
            return False
    return True


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS or not math.isfinite(float(text)):
        raise NoValue(f"a number of {len(text)} digits, which no float can hold")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NoValue(f"the number {text[:40]}, which no float can hold")
    return value


def _constant(text: str) -> float:
    raise NoValue(f"{text} is not a number in JSON")


# Writing


def encode_record(record: Record) -> bytes:
    """Return a record as a line with its newline; ValueError if JSON cannot hold one of its
    numbers.
    """
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if type(value) is float and not math.isfinite(value):
            raise ValueError(f"the record cannot be written: {name} is {value}")
    return encode_json(record) + b"\n"


def encode_json(value: Any) -> bytes:
    """Return a value as JSON, records in it as well."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # half of a character, in what a program printed
        return json.dumps(msgspec.to_builtins(value, enc_hook=list)).encode()


def _text_of(value: Any) -> msgspec.Raw:
    if isinstance(value, Part):
        return msgspec.Raw(value.text)
    raise TypeError(f"a {type(value).__name__} is no part of a record")


_ENCODER = msgspec.json.Encoder(enc_hook=_text_of)
