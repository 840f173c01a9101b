"""Compare two observations of one clause field by field.

A field that cannot be compared because an earlier one differs (an error has no values) is neither
equal nor different. Differences are worded so that the same kind of change has the same words:
numbers, axis names and device ids are left out. Both observations are plain JSON of any version of
this program: what one of them lacks is not compared.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformance.model.records import Cell
from reports.analysis.comparing.changes import masked
from reports.store.shapes import in_known_form

Json = Mapping[str, Any]

OUTCOME, FAULT = "outcome", "fault"
ERROR_TYPE, ERROR_PHASE, ERROR_TEXT = "error type", "error phase", "error text"
TREE, KIND, SHAPE, DTYPE, WEAK_TYPE = "tree", "kind of value", "shape", "dtype", "weak type"
VALUES, COMMITTED = "values", "committed"
SHARDING, SPEC, AXIS_TYPES = "sharding kind", "sharding spec", "axis types"
DEVICES, MEMORY_KIND = "device order", "memory kind"
WARNINGS, DELETED, COLLECTIVES = "warnings", "deleted inputs", "collectives"
COMPILED = "compiles"
FIELDS = (
    *(FAULT, OUTCOME, ERROR_TYPE, ERROR_PHASE, ERROR_TEXT, TREE, KIND, SHAPE, DTYPE, WEAK_TYPE),
    *(VALUES, SHARDING, SPEC, AXIS_TYPES, DEVICES, MEMORY_KIND, COMMITTED, WARNINGS, DELETED),
    *(COLLECTIVES, COMPILED),
)

# As far as values of one dtype may be apart by the order of a sum alone, relative to the largest.
ROUNDING = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 2e-2}
OWN_ROWS, ALL_ROWS = "this process's rows", "all processes' rows"
ROUNDED, OTHER = "equal but for rounding", "other values"

SECOND_CALL = "second call"  # the step that repeats the one before it
REPEATED = (SECOND_CALL, "step 2", "step 3", "step 4")  # which repeat the one before them
ITS_BODY = "its body again"  # what is compiled where the mapped function is traced once more
ABSENT = "absent"  # the outcome of a step that the other observation has

_AGAIN = "again"  # where a probe notes what a step traced and compiled
_MESSAGE_KEPT = 120  # characters of a message by which it is known
_MESSAGE_SHOWN = 300  # and of one that is shown whole
_QUOTED = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
_LINK = re.compile(r"https?://\S+")
_FUNCTION = re.compile(r"\bjit\([\w<>.]+\)")
_DELETED_FIGURES = ("donated deleted", "kept deleted")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field's old and new value, in which step; `seen` describes it exactly."""

    step: str
    field: str
    old: str
    new: str
    seen: str = dataclasses.field(default="", compare=False)


@dataclass(slots=True)
class Compared:
    """The differences between two cells, each kind once, and the number of equal fields."""

    differences: dict[Difference, Difference] = dataclasses.field(default_factory=dict)
    same: Counter[str] = dataclasses.field(default_factory=Counter)

    def note(self, step: str, name: str, old: str, new: str, seen: str = "") -> bool:
        """Record a comparison; return whether the values are equal."""
        if old == new:
            self.same[name] += 1
            return True
        one = Difference(step, name, old, new, seen or f"{old} → {new}")
        self.differences.setdefault(one, one)
        return False


Steps = Sequence[tuple[Any, Mapping[str, Json]]]  # per process: its number, and its steps by name


def compare_cells(one: Cell, other: Cell) -> Compared:
    """Compare every process of `one` with the same process of `other`."""
    found = Compared()
    if found.note("", FAULT, _fault(one), _fault(other)):
        _processes(found, steps_of(one), steps_of(other))
    return found


def compare_steps(one: Steps, other: Steps) -> Compared:
    """Compare steps of two cells with the same fault, such as one step of each."""
    found = Compared()
    _processes(found, one, other)
    return found


def same_fault(one: Cell, other: Cell) -> bool:
    """Return whether neither cell has a fault, or both the same; others are not compared."""
    return _fault(one) == _fault(other)


def steps_of(cell: Cell) -> Steps:
    """Return the steps of every process; ResultsError if they are of an unknown form."""
    return [(one.get("process"), _steps(one)) for one in in_known_form(cell)]


def _fault(cell: Cell) -> str:
    if cell.fault is None:
        return "none"
    signals = sorted({one.signal for one in cell.fault.processes if one.signal})
    return " ".join([cell.fault.kind, *signals])


def _processes(found: Compared, one: Steps, other: Steps) -> None:
    of_process = dict(other)
    for process, here in one:
        there = of_process.get(process)
        if there is None:
            continue
        for name in dict.fromkeys([*here, *there]):
            if name in here and name in there:
                _step(found, name, here[name], there[name])
            else:
                outcome = [
                    str(s[name].get("outcome")) if name in s else ABSENT for s in (here, there)
                ]
                found.note(name, OUTCOME, *outcome)


def _steps(observation: Json) -> dict[str, Json]:
    """Return the steps by name; steps with the same name are numbered."""
    counted: Counter[str] = Counter()
    found: dict[str, Json] = {}
    for step in observation.get("steps", ()):
        name = str(step.get("name"))
        counted[name] += 1
        found[name if counted[name] == 1 else f"{name} ({counted[name]})"] = step
    return found


def _step(found: Compared, name: str, one: Json, other: Json) -> None:
    if found.note(name, OUTCOME, str(one.get("outcome")), str(other.get("outcome"))):
        if one.get("exception") and other.get("exception"):
            _errors(found, name, one["exception"], other["exception"])
        elif one.get("value") and other.get("value"):
            _results(found, name, one["value"], other["value"])
        _figures(found, name, one.get("extra") or {}, other.get("extra") or {})
        # What a first call compiles depends on what was compiled before it in the same process.
        if name == SECOND_CALL and "compiled" in one and "compiled" in other:
            seen = f"{one['compiled']} → {other['compiled']}"
            found.note(name, COMPILED, _some(one["compiled"]), _some(other["compiled"]), seen)
    here, there = _warnings(one), _warnings(other)
    for text in sorted(here - there):
        found.note(name, WARNINGS, text, "none")
    for text in sorted(there - here):
        found.note(name, WARNINGS, "none", text)
    if here == there:
        found.same[WARNINGS] += 1


def _errors(found: Compared, step: str, one: Json, other: Json) -> None:
    found.note(step, ERROR_PHASE, str(one.get("phase")), str(other.get("phase")))
    if found.note(step, ERROR_TYPE, str(one["type"]), str(other["type"])):
        here, there = str(one["message"]), str(other["message"])
        seen = f"{here[:_MESSAGE_SHOWN]} → {there[:_MESSAGE_SHOWN]}"
        found.note(step, ERROR_TEXT, message_kept(here), message_kept(there), seen)


def _warnings(step: Json) -> set[str]:
    return {
        f"{one.get('category')}: {message_kept(str(one.get('message')))}"
        for one in step.get("warnings") or ()
    }


@lru_cache(maxsize=8192)  # most messages are those of other cells too
def message_kept(text: str) -> str:
    """Return the part of a message that does not depend on its arguments."""
    for what, words in ((_LINK, "…"), (_QUOTED, "'…'"), (_FUNCTION, "jit(…)")):
        text = what.sub(words, text)
    return masked(text)[:_MESSAGE_KEPT]


def _results(found: Compared, step: str, one: Json, other: Json) -> None:
    if not found.note(step, TREE, str(one.get("tree")), str(other.get("tree"))):
        return
    for here, there in zip(one.get("leaves", ()), other.get("leaves", ()), strict=False):
        _leaves(found, step, here, there)


def _leaves(found: Compared, step: str, one: Json, other: Json) -> None:
    if not found.note(step, KIND, _kind(one), _kind(other)):
        return
    shapes = [one.get("shape"), other.get("shape")]
    local = [leaf.get("local_shape") for leaf in (one, other)]
    if shapes[0] == shapes[1]:
        found.same[SHAPE] += 1
    elif None not in local and local[0] == local[1]:
        # The same rows of this process, as a whole or as a part of all processes'.
        before, after = (OWN_ROWS if s == local[0] else ALL_ROWS for s in shapes)
        found.note(step, SHAPE, before, after, f"{shapes[0]} → {shapes[1]}")
    else:
        found.note(step, SHAPE, *_shapes(shapes[0] or [], shapes[1] or []))
    same_dtype = found.note(step, DTYPE, str(one.get("dtype")), str(other.get("dtype")))
    for name, key in ((WEAK_TYPE, "weak_type"), (COMMITTED, "committed")):
        if one.get(key) is not None and other.get(key) is not None:
            found.note(step, name, *(str(leaf[key]).lower() for leaf in (one, other)))
    if local[0] == local[1] and same_dtype:
        _values(found, step, one, other)
    if one.get("sharding") and other.get("sharding"):
        _shardings(found, step, one, other)


def _kind(leaf: Json) -> str:
    kind = str(leaf.get("type"))
    return f"{kind}, deleted" if leaf.get("deleted") else kind


def _shapes(one: list[int], other: list[int]) -> tuple[str, str, str]:
    seen = f"{one} → {other}"
    if len(one) != len(other):
        return f"rank {len(one)}", f"rank {len(other)}", seen
    axes = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    words = "more" if sum(other) > sum(one) else "fewer"
    return "a size", f"{words} along {' and '.join(f'axis {axis}' for axis in axes)}", seen


def _values(found: Compared, step: str, one: Json, other: Json) -> None:
    here, there = one.get("values"), other.get("values")
    if here is None or there is None:
        if one.get("text") and other.get("text"):
            found.note(step, VALUES, *(masked(str(leaf["text"])) for leaf in (one, other)))
        return
    if here == there:
        found.same[VALUES] += 1
        return
    apart = _apart(here, there)
    rounded = apart <= _rounding(one.get("dtype"))
    found.note(
        step, VALUES, "values", ROUNDED if rounded else OTHER, f"up to {apart:.2g} of the largest"
    )


def apart_by_rounding(one: Iterable[Any], other: Iterable[Any], dtype: str) -> bool:
    """Return whether values of one dtype differ no more than by the order of a sum."""
    return _apart(one, other) <= _rounding(dtype)


def _rounding(dtype: Any) -> float:
    return ROUNDING.get(str(dtype), 0.0)


def _apart(one: Iterable[Any], other: Iterable[Any]) -> float:
    """Return the largest difference relative to the largest value; infinite if one is not
    finite.
    """
    here, there = [*_numbers(one)], [*_numbers(other)]
    if len(here) != len(there):
        return math.inf
    pairs = [(a, b) for a, b in zip(here, there, strict=True) if str(a) != str(b)]
    if not all(math.isfinite(a) and math.isfinite(b) for a, b in pairs):
        return math.inf
    largest = max((abs(v) for v in [*here, *there] if math.isfinite(v)), default=0.0)
    return max((abs(a - b) for a, b in pairs), default=0.0) / (largest or 1.0)


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _numbers(value)
        else:
            yield float(value)


def _shardings(found: Compared, step: str, one: Json, other: Json) -> None:
    here, there = one["sharding"], other["sharding"]
    found.note(step, SHARDING, str(here.get("type")), str(there.get("type")))
    before, after = _split(one), _split(other)
    same_rank = len(one.get("shape") or ()) == len(other.get("shape") or ())
    if before is not None and after is not None and same_rank:
        seen = f"{here.get('spec')} → {there.get('spec')}"
        found.note(step, SPEC, _axes(before), _axes(after), seen)
    if here.get("axis_types") and there.get("axis_types"):
        found.note(step, AXIS_TYPES, *(_types(s["axis_types"]) for s in (here, there)))
    found.note(step, MEMORY_KIND, str(here.get("memory_kind")), str(there.get("memory_kind")))
    _devices(found, step, here.get("devices"), there.get("devices"))


def _split(leaf: Json) -> tuple[int, ...] | None:
    """Return the axes along which an array is sharded; None if its record does not say."""
    sharding = leaf["sharding"]
    spec = sharding.get("spec")
    if sharding.get("type") == "SingleDeviceSharding" or len(sharding.get("devices") or ()) == 1:
        return ()
    if isinstance(spec, list):
        return tuple(axis for axis, part in enumerate(spec) if part)
    if isinstance(spec, str) and spec.startswith("ShardingSpec(("):
        dims = re.findall(r"(Chunked|Unstacked|NoSharding)\(([\d, ]*)\)", spec)
        return tuple(axis for axis, (kind, _) in enumerate(dims) if kind != "NoSharding")
    return None


def _axes(split: tuple[int, ...]) -> str:
    if not split:
        return "not split"
    return f"split along {' and '.join(f'axis {axis}' for axis in split)}"


def _types(types: Iterable[Any]) -> str:
    return " ".join(dict.fromkeys(map(str, types)))


def _devices(found: Compared, step: str, one: Any, other: Any) -> None:
    if not isinstance(one, list) or not isinstance(other, list) or one == other:
        found.same[DEVICES] += one == other
        return
    seen = f"{one} → {other}"
    if sorted(one) == sorted(other):
        found.note(step, DEVICES, "devices", "the same in another order", seen)
    elif set(one) < set(other):
        found.note(step, DEVICES, _many(one), "more devices", seen)
    elif set(other) < set(one):
        found.note(step, DEVICES, "more devices", _many(other), seen)
    else:
        found.note(step, DEVICES, "devices", "others", seen)


def _many(devices: list[Any]) -> str:
    return "one device" if len(devices) == 1 else "some devices"


def _figures(found: Compared, step: str, one: Json, other: Json) -> None:
    """Compare what the probe noted beside the result, if both did."""
    for key in one.keys() & other.keys():
        here, there = one[key], other[key]
        if key in _DELETED_FIGURES:
            found.note(step, DELETED, *(f"{key}: {_distinct(v)}" for v in (here, there)))
        elif key == "programs":
            before, after = _operations(here), _operations(there)
            found.note(step, COLLECTIVES, _kinds(before), _kinds(after), f"{before} → {after}")
        elif key == "moved" and isinstance(here, dict) and isinstance(there, dict):
            found.note(step, COLLECTIVES, _moved(here), _moved(there), f"{here} → {there}")
        elif key == _AGAIN and step in REPEATED:
            found.note(step, COMPILED, _again(here), _again(there), f"{here} → {there}")


def _some(count: int) -> str:
    return "something" if count else "nothing"


def _again(noted: Any) -> str:
    """Return whether a repeated step traced and compiled the mapped function again."""
    counts = noted if isinstance(noted, dict) else {}
    return ITS_BODY if counts.get("compiled") and counts.get("traced") else _some(0)


def _distinct(values: Any) -> str:
    return " and ".join(sorted({str(v).lower() for v in values})) or "none"


def _operations(programs: Iterable[Json]) -> dict[str, int]:
    return dict(
        Counter(str(c.get("operation")) for p in programs for c in p.get("collectives") or ())
    )


def _kinds(operations: Mapping[str, int]) -> str:
    return ", ".join(sorted(operations)) or "none"


def _moved(moved: Json) -> str:
    host = " and through the host" if moved.get("host") else ""
    return f"{_kinds(moved.get('collectives') or {})}{host}"
