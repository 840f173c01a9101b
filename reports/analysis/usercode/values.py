"""Describe how far the values of two results differ, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


def describe_values(old: Sequence[Json], new: Sequence[Json]) -> str:
    """Return how many values differ, by how much, and where most; empty where none can be told.

    `old` and `new` are the same step of each process; the place is an index into what a process
    holds of the array.
    """
    apart = [
        (gap, f"{_number(a)} → {_number(b)} in {where}")
        for process, (here, there) in enumerate(zip(old, new, strict=False))
        for a, b, where in _differing(here, there, process, len(old))
        if not math.isnan(gap := _gap(a, b))
    ]
    if not apart:
        return ""
    many = (
        f"{len(apart)} value{'s' if len(apart) > 1 else ''} differ{'' if len(apart) > 1 else 's'}"
    )
    gap, text = max(apart, key=lambda one: one[0])
    return f"{many}, most by {gap:.3g}: {text}"


def _differing(
    here: Json, there: Json, process: int, processes: int
) -> Iterator[tuple[Any, Any, str]]:
    pairs = zip(_leaves(here), _leaves(there), strict=False)
    of_process = f" of process {process}" if processes > 1 else ""
    for one, other in pairs:
        shape = one.get("local_shape")
        if shape is None or shape != other.get("local_shape"):
            continue
        for at, (a, b) in enumerate(zip(one["values"], other["values"], strict=False)):
            if str(a) != str(b):
                yield a, b, f"result{one['path']}{_index(at, shape)}{of_process}"


def _leaves(step: Json) -> Sequence[Json]:
    found: Sequence[Json] = (step.get("value") or {}).get("leaves") or ()
    return [one for one in found if one.get("values") is not None]


def _index(flat: int, shape: Sequence[int]) -> str:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return str(index[::-1]) if shape else ""


def _gap(a: Any, b: Any) -> float:
    """Return the absolute difference of two recorded numbers; infinite where one is not finite."""
    try:
        one, other = _value(a), _value(b)
    except (TypeError, ValueError):
        return math.nan
    gap = abs(one - other)
    return math.inf if math.isnan(gap) else gap


def _value(value: Any) -> complex:
    if isinstance(value, list):
        return complex(float(value[0]), float(value[1]))
    return complex(float(value))


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
