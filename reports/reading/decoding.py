"""The strict reading of one JSON object: no key missing, unknown or of another type."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from reports.reading.lazily import Lazily

T = TypeVar("T")


class RecordError(ValueError):
    """A JSON object is not the record that its kind says; the message names the key."""


def decode(cls: type[T], value: object, where: str) -> T:
    """`value` as a `cls`; RecordError where a key is missing, unknown or of another type."""
    record: T = _decode(cls, value, where)
    return record


def _decode(cls: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where} is {_kind_of(value)}, not an object")
    hints, required, plain = _shape(cls)
    if not required <= value.keys() <= plain.keys():
        raise RecordError(f"{where} {_keys_wrong(hints, required, value)}")
    converted = {
        k: _convert(hints[k], v, f"{where}: {k!r}")
        for k, v in value.items()
        if type(v) not in plain[k]
    }
    return cls(**(value | converted if converted else value))


def _keys_wrong(hints: Mapping[str, Any], required: Set[str], value: Mapping[str, Any]) -> str:
    if missing := sorted(required - value.keys()):
        return f"lacks {', '.join(map(repr, missing))}"
    return f"has the unknown key {', '.join(map(repr, sorted(value.keys() - hints.keys())))}"


@cache
def _shape(cls: Any) -> tuple[dict[str, Any], Set[str], dict[str, tuple[type, ...]]]:
    """The fields' types, which of them there must be, and what each may be as it stands."""
    required = {
        f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING
    }
    hints = get_type_hints(cls)
    # As the keys of a dict, like those of the records that are compared with them.
    names = dict.fromkeys(name for name in hints if name in required)
    return hints, names.keys(), {name: _plain(hint) for name, hint in hints.items()}


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
