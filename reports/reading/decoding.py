"""The strict reading of one JSON object: no key missing, unknown or of another type."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from reports.reading.lazily import Lazily

T = TypeVar("T")

MOST_KNOWN = 1000  # signatures of records of one kind


class RecordError(ValueError):
    """A JSON object is not the record that its kind says; the message names the key."""


def decode(cls: type[T], value: object, where: str) -> T:
    """`value` as a `cls`; RecordError where a key is missing, unknown or of another type."""
    record: T = _decode(cls, value, where)
    return record


def _decode(cls: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where} is {_kind_of(value)}, not an object")
    shape = _shape(cls)
    signature = (*value, *map(type, value.values()))
    to_convert = shape.known.get(signature)
    if to_convert is None:  # of a file's records, nearly all have one of a few signatures
        if not shape.required <= value.keys() <= shape.plain.keys():
            raise RecordError(f"{where} {_keys_wrong(shape, value)}")
        to_convert = tuple(k for k, v in value.items() if type(v) not in shape.plain[k])
        if len(shape.known) < MOST_KNOWN:
            shape.known[signature] = to_convert
    if not to_convert:
        return cls(**value)
    hints = shape.hints
    return cls(**value | {k: _convert(hints[k], value[k], f"{where}: {k!r}") for k in to_convert})


def _keys_wrong(shape: _Shape, value: Mapping[str, Any]) -> str:
    if missing := sorted(shape.required - value.keys()):
        return f"lacks {', '.join(map(repr, missing))}"
    unknown = sorted(value.keys() - shape.hints.keys())
    return f"has the unknown key {', '.join(map(repr, unknown))}"


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields' types, which of them there must be, and what each may be as it stands.

    `known` is, of records of which the keys are right, by keys and types those to be converted.
    """

    hints: Mapping[str, Any]
    required: Set[str]
    plain: Mapping[str, tuple[type, ...]]
    known: dict[tuple[object, ...], tuple[str, ...]] = field(default_factory=dict)


@cache
def _shape(cls: Any) -> _Shape:
    required = {
        f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING
    }
    hints = get_type_hints(cls)
    # As the keys of a dict, like those of the records that are compared with them.
    names = dict.fromkeys(name for name in hints if name in required)
    return _Shape(hints, names.keys(), {name: _plain(hint) for name, hint in hints.items()})


def _plain(hint: Any) -> tuple[type, ...]:
    """The types of values that need no conversion: nearly all, in a file of a hundred thousand."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for part in get_args(hint) for one in _plain(part))
    if get_origin(hint) is Sequence:
        return (Lazily,)
    return (hint,) if hint in (str, int, float, bool, type(None)) else ()


def _convert(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            known = ", ".join(str(m.value) for m in hint)
            raise RecordError(f"{where} is {value!r}, not one of: {known}") from None
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        inner = next(a for a in args if a is not type(None))
        return None if value is None else _convert(inner, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_convert(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Sequence and isinstance(value, list):
        return tuple(_convert(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {k: _convert(args[1], v, f"{where}: {k!r}") for k, v in value.items()}
    if is_dataclass(hint):
        return _decode(hint, value, where)
    if hint is float and type(value) is int:
        return value
    # bool is an int to isinstance, never to a reader of the file.
    if isinstance(hint, type) and type(value) is hint:
        return value
    name = {tuple: "a list", Sequence: "a list", Mapping: "an object"}.get(origin) or getattr(
        hint, "__name__", hint
    )
    raise RecordError(f"{where} is {_kind_of(value)}, not {name}")


def _kind_of(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value), type(value).__name__)
