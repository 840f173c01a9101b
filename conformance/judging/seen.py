"""Patterns of recorded fields, by which a deviation entry describes what is seen.

A text in a pattern is a regular expression: it is searched for in a recorded text, and must match a
name as a whole. A table lists keys that must exist. A list has one pattern per element. Other
values must be equal. A table compared with a number gives bounds, `at_least` and `at_most`;
compared with a list, it applies to each element. Patterns are compared with JAX's own messages and
with measurements, never with text that this project writes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.spec.codes import Code
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault
from conformance.spec.observation import Observation, Step

# Which of the processes, in order, by words that hold on every topology.
SOME: Mapping[str, Callable[[list[int]], list[int]]] = {
    "all": lambda every: every,
    "all but the first": lambda every: every[1:],
    "all but the last": lambda every: every[:-1],
    "the first half": lambda every: every[: len(every) // 2],
    "the second half": lambda every: every[len(every) // 2 :],
}

Processes = tuple[int, ...] | str  # their numbers, or one of the words of SOME

OF_A_STEP = (
    *("type", "phase", "message"),  # of what it raised
    "returned",  # the values, as they are shown
    "tree",  # its containers, as JAX prints them
    "leaves",  # the recorded leaves: type, shape, dtype, weak_type, committed, sharding
    "noted",  # what the probe noted, by key
    "warnings",  # each category, message, count
    "logs",  # each logger, level, message
    "code",  # what was compared and failed (`codes.Code`), or several
    "figure",  # the note that was compared and failed, by its key, or several
    "mistake",  # the known mistake whose values were seen
    "values",  # of a step that returned where an error was expected (`codes.Values`)
    "absent",  # true of a step that the probe did not reach
)
AT_LEAST, AT_MOST = "at_least", "at_most"
NAMES = ("type", "phase", "code", "figure", "mistake", "values", "kind", "signal", "step")
OF_A_FAULT = ("kind", "process", "signal", "exit", "step", "in_step")


EMPTY = "^$"  # the one pattern that may be found in an empty text


class PatternError(ValueError):
    """An invalid pattern in an entry; the message says why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A part of a pattern that differs from what was observed; `missing` if nothing was."""

    path: tuple[str | int, ...]
    expected: Any
    observed: Any = None
    missing: bool = False


@dataclass(frozen=True, slots=True)
class StepPattern:
    """What is seen in a failing step.

    `code` is a list, only `error` by default. The figures that fail are those of `figure`; if that
    is left out, each is a key of `noted`: a second one cannot hide behind the entry of another.
    """

    fields: Mapping[str, Any]

    def agrees(self, step: Step | None, failed: Sequence[Finding]) -> bool:
        """Return whether a step with these failed comparisons matches the pattern."""
        return next(self.differences(step, failed), None) is None

    def differences(self, step: Step | None, failed: Sequence[Finding]) -> Iterator[Difference]:
        """Yield the fields by which a step that does not agree differs from the pattern."""
        seen = shown(step, failed)
        if "figure" not in self.fields:
            noted = self.fields.get("noted")
            named = list(noted) if isinstance(noted, Mapping) else []
            if not set(seen["figure"]) <= set(named):
                yield Difference(("figure",), named, seen["figure"])
        yield from _field_differences({"code": [Code.ERROR], **self.fields}, seen)

    def __str__(self) -> str:
        return _in_words(self.fields)


@dataclass(frozen=True, slots=True)
class FaultPattern:
    """How the cluster fails.

    `kind` is crashed or hung; `process` is the number of the one that ended or stalled first, and
    `signal`, `exit` and `step` are its own; `in_step` names for each step the processes in it.
    """

    fields: Mapping[str, Any]

    def agrees(self, fault: Fault) -> bool:
        """Return whether a fault matches the pattern."""
        return next(self.differences(fault), None) is None

    def differences(self, fault: Fault) -> Iterator[Difference]:
        """Yield the fields by which a fault that does not agree differs from the pattern."""
        first = fault.processes[0] if fault.processes else None
        known: dict[str, Any] = {"kind": fault.kind}
        if first is not None:
            known |= {"process": first.process, "signal": first.signal}
            known |= {"exit": first.exit, "step": first.in_step}
        plain = {key: value for key, value in self.fields.items() if key != "in_step"}
        yield from _field_differences(plain, known)
        every = sorted(one.process for one in fault.processes)
        for step, some in self.fields.get("in_step", {}).items():
            there = sorted(one.process for one in fault.processes if one.in_step == step)
            if there != (wanted := chosen(some, every)):
                yield Difference(("in_step", step), wanted, there)

    def __str__(self) -> str:
        return _in_words(self.fields)


def chosen(some: Processes, every: list[int]) -> list[int]:
    """Return the processes, in order, that a word of SOME or a list of numbers selects."""
    return SOME[some](every) if isinstance(some, str) else [one for one in every if one in some]


def shown(step: Step | None, failed: Sequence[Finding]) -> dict[str, Any]:
    """Return a step in the form that patterns are compared with; None as input is a step not
    reached.
    """
    view: dict[str, Any] = {
        "code": sorted({one.code for one in failed}),
        "figure": sorted({one.figure for one in failed} - {""}),
    }
    for key, values in (
        ("mistake", {one.mistake for one in failed} - {""}),
        ("values", {one.values for one in failed} - {""}),
    ):
        if len(values) == 1:
            view[key] = values.pop()
    if step is None:
        return view | {"absent": True}
    view |= {"noted": step.extra, "warnings": step.warnings, "logs": step.logs}
    if step.raised is not None:
        raised = step.raised
        message = " ".join(raised.message.split())
        return view | {"type": raised.type, "phase": raised.phase, "message": message}
    leaves = [
        {
            "type": leaf.type,
            "shape": leaf.shape,
            "dtype": leaf.dtype,
            "weak_type": leaf.weak_type,
            "committed": leaf.committed,
            "sharding": leaf.sharding,
        }
        for leaf in step.leaves
    ]
    returned = ", ".join(map(str, step.leaves)) or "nothing"
    if step.tree is not None:
        view["tree"] = step.tree
    return view | {"leaves": leaves, "returned": returned}


def _field_differences(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Difference]:
    for key, one in wanted.items():
        if key not in there:
            yield Difference((key,), one, missing=True)
        elif key not in NAMES:
            yield from differences(one, there[key], (key,))
        elif not agrees(_whole(one), there[key]):
            yield Difference((key,), one, there[key])


def differences(pattern: Any, value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:
    """Yield the innermost parts of a pattern that a value does not match; none if it agrees."""
    if agrees(pattern, value):
        return
    many = isinstance(value, Sequence) and not isinstance(value, str)
    if isinstance(pattern, Mapping) and isinstance(value, Mapping):
        for key, one in pattern.items():
            if key in value:
                yield from differences(one, value[key], (*path, key))
            else:
                yield Difference((*path, key), one, missing=True)
    elif isinstance(pattern, Mapping) and many and value:
        for at, one in enumerate(value):
            yield from differences(pattern, one, (*path, at))
    elif isinstance(pattern, list | tuple) and many and len(pattern) == len(value):
        for at, (some, one) in enumerate(zip(pattern, value, strict=True)):
            yield from differences(some, one, (*path, at))
    else:
        yield Difference(path, pattern, value)


def _whole(pattern: Any) -> Any:
    """Return the pattern of a name, or of a list of names, changed to match the whole of it."""
    if isinstance(pattern, list):
        return [_whole(one) for one in pattern]
    return rf"\A(?:{pattern})\Z" if isinstance(pattern, str) else pattern


def agrees(pattern: Any, value: Any) -> bool:
    """Return whether a value matches a pattern; a text is searched for in another value's JSON."""
    match pattern:
        case str():
            text = (
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False, sort_keys=True)
            )
            return re.search(pattern, text, re.DOTALL) is not None
        case Mapping():
            return _table_agrees(pattern, value)
        case list() | tuple():
            return (
                isinstance(value, Sequence)
                and not isinstance(value, str)
                and len(pattern) == len(value)
                and all(map(agrees, pattern, value))
            )
        case _:
            return type(pattern) is type(value) and bool(pattern == value)


def _table_agrees(pattern: Mapping[str, Any], value: Any) -> bool:
    match value:
        case Mapping():
            return all(key in value and agrees(one, value[key]) for key, one in pattern.items())
        case list() | tuple():
            return bool(value) and all(agrees(pattern, one) for one in value)
        case int() | float():
            least, most = pattern.get(AT_LEAST, -math.inf), pattern.get(AT_MOST, math.inf)
            return bool(pattern.keys() <= {AT_LEAST, AT_MOST} and least <= value <= most)
        case _:
            return False


def steps_of(observations: Iterable[Observation]) -> dict[tuple[int, str], Step]:
    """Return the steps by process and name; if several have one name, the first that raised."""
    found: dict[tuple[int, str], Step] = {}
    for seen in observations:
        for step in seen.steps:
            key = (seen.process, step.name)
            if key not in found or (found[key].raised is None and step.raised is not None):
                found[key] = step
    return found


def step_pattern(table: Any) -> StepPattern:
    """Parse the pattern of a step; PatternError says what is wrong with it."""
    fields = _checked(table, OF_A_STEP)
    if "figure" in fields:
        figure = [fields["figure"]] if isinstance(fields["figure"], str) else fields["figure"]
        if not isinstance(figure, list) or not all(isinstance(one, str) for one in figure):
            raise PatternError(f"figure is {figure!r}; give the key of a note, or a list of keys")
        fields["figure"] = sorted(figure)
    if "code" in fields:
        code = [fields["code"]] if isinstance(fields["code"], str) else fields["code"]
        known = [one.value for one in Code]
        if not isinstance(code, list) or not code or not set(code) <= set(known):
            raise PatternError(
                f"code is {fields['code']!r}, not of {', '.join(known)}; give one, or a list"
            )
        fields["code"] = sorted(code)
    elif not fields.keys() & {"type", "message"}:
        raise PatternError("a step that raises nothing needs `code`: what was compared and failed")
    return StepPattern(fields)


def fault_pattern(table: Any) -> FaultPattern:
    """Parse the pattern of a fault; PatternError says what is wrong with it."""
    fields = _checked(table, OF_A_FAULT)
    if "kind" not in fields:
        raise PatternError("a fault has a kind: crashed or hung")
    places = fields.get("in_step", {})
    if not isinstance(places, dict) or not all(map(_are_processes, places.values())):
        raise PatternError('in_step is written {"first call" = "all but the last"}')
    return FaultPattern(fields)


def _are_processes(some: Any) -> bool:
    if isinstance(some, str):
        return some in SOME
    return isinstance(some, list) and {type(one) for one in some} <= {int}


def _checked(table: Any, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(table, dict) or not table:
        raise PatternError("what is seen is a table of fields")
    if unknown := sorted(table.keys() - set(keys)):
        raise PatternError(f"{', '.join(unknown)} is not a field; there are {', '.join(keys)}")
    for text in _texts(table):
        if text != EMPTY and re.compile(text).search(""):
            raise PatternError(f"{text!r} matches every text: narrow it")
    return dict(table)


def _texts(pattern: Any) -> Iterable[str]:
    match pattern:
        case str():
            yield pattern
        case dict():
            for one in pattern.values():
                yield from _texts(one)
        case list():
            for one in pattern:
                yield from _texts(one)


def _in_words(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value_in_words(value)}" for key, value in fields.items())


def _value_in_words(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return " and ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
