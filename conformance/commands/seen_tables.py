"""What an entry says was seen: the fields, and patterns of them, that recorded steps have in
common.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from conformance.judging.seen import AT_LEAST, AT_MOST
from conformance.mutation.perturbing.figures import COLLECTIVES, MULTIPLE
from conformance.spec import aspects
from conformance.spec.codes import Code, figures_of
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault
from conformance.spec.observation import Leaf, Step

LEAST_IN_COMMON = 12  # characters by which two texts are said to begin alike
MOST_OF_A_TEXT = 120  # characters of what was seen that a pattern holds

MOVED, PROGRAMS = "moved", "programs"  # figures of a step
EXACT = ("bytes", "host")  # parts of what moves that an entry names exactly

# Fields of leaves that an entry names in place of the printed values, which may be the right ones.
Field = tuple[str, ...]
OF_LEAVES: Mapping[str, tuple[Field, ...]] = {
    Code.DTYPE: (("dtype",), ("weak_type",)),
    Code.WEAK_TYPE: (("dtype",), ("weak_type",)),
    Code.MEMORY_KIND: (("sharding", "memory_kind"),),
}
COMMITTED = (("committed",),)
PLACED = (("sharding", "type"), ("sharding", "spec"), DEVICES := ("sharding", "devices"))

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_ESCAPED = r"\\\g<0>"
# What differs from run to run: a pattern ends before it.
_PASSING = re.compile(r"0x[0-9a-f]{4,}|\bport \d|\bpid \d|/tmp/|\d{5,}")


def table_of_steps(
    some: Sequence[tuple[Step | None, Finding]], claims: Collection[str]
) -> dict[str, Any]:
    """Return the fields that all of these have in common, for one kind of failure.

    `claims` are the aspects of the step that its clause judges.
    """
    step, failed = some[0]
    codes = sorted({f.code for _, f in some})
    code = codes[0] if len(codes) == 1 else codes
    if step is None:
        return {"absent": True, "code": code}
    raised = [one.raised for one, _ in some if one is not None and one.raised is not None]
    if raised:
        error: dict[str, Any] = {
            "type": raised[0].type,
            "phase": raised[0].phase,
            "message": pattern(" ".join(one.message.split()) for one in raised),
        }
        return error if codes == [Code.ERROR] else error | {"code": code}
    table: dict[str, Any] = {"code": code}
    for key in ("mistake", "values"):
        if value := getattr(failed, key):
            table[key] = _SPECIAL.sub(_ESCAPED, value)
    if "mistake" in table:
        return table
    seen = [one for one, _ in some if one is not None]
    if noted := _figures({*figures_of(codes), *(f.figure for _, f in some if f.figure)}, seen):
        return table | {"noted": noted}  # the values may be the right ones
    if len(codes) == 1 and (leaves := _leaves(_fields(codes[0], claims, seen), seen)):
        return table | {"leaves": leaves}
    return table | {"returned": pattern(", ".join(map(str, one.leaves)) for one in seen)}


def _fields(code: str, claims: Collection[str], seen: Sequence[Step]) -> tuple[Field, ...]:
    """Return the fields of leaves that differ where these steps fail by this code.

    Being committed is expected of each leaf whose clause claims nothing else of its sharding.
    """
    if code != Code.SHARDING:
        return OF_LEAVES.get(code, ())
    leaves = [leaf for step in seen for leaf in step.leaves]
    placed = bool({aspects.SHARDING_TYPE, aspects.SPEC, aspects.DEVICES} & set(claims))
    committed = aspects.COMMITTED in claims or (
        not placed and any(leaf.committed is False for leaf in leaves)
    )
    return (COMMITTED if committed else ()) + (PLACED if placed or not committed else ())


def _leaves(fields: Sequence[Field], seen: Sequence[Step]) -> Any:
    """Return these fields of each returned leaf, once if all are alike; nothing if there are none,
    or if steps differ by more than the devices.
    """
    each = [[_parts(fields, leaf) for leaf in one.leaves] for one in seen]
    if not fields or not each[0] or len({len(leaves) for leaves in each}) > 1:
        return []
    found: list[dict[str, Any]] = []
    for same in zip(*each, strict=True):
        table: dict[str, Any] = {}
        for path in same[0]:
            values = [one.get(path) for one in same]
            if any(one != values[0] for one in values) and path != DEVICES:
                return []
            *outer, key = path
            inside = table.setdefault(outer[0], {}) if outer else table
            inside[key] = _leaf_pattern(values)
        found.append(table)
    alike = len(found) > 1 and all(one == found[0] for one in found)
    return found[0] if alike else found


def _parts(fields: Sequence[Field], leaf: Leaf) -> dict[Field, Any]:
    """Return those fields of a leaf that it has, by their paths."""
    found: dict[Field, Any] = {}
    for path in fields:
        *outer, key = path
        inside = getattr(leaf, outer[0]) if outer else {key: getattr(leaf, key)}
        if inside and inside.get(key) is not None:
            found[path] = inside[key]
    return found


def _leaf_pattern(values: Sequence[Any]) -> Any:
    """Return the pattern of a field of leaves: the value if there is one, else any of them."""
    first = values[0]
    if any(one != first for one in values):
        return one_of_pattern(values)
    return f"^{_SPECIAL.sub(_ESCAPED, first)}$" if isinstance(first, str) else first


def _figures(names: Collection[str], seen: Sequence[Step]) -> dict[str, Any]:
    """Return the figures of these names that all of these steps noted."""
    noted = {name: [one.extra.get(name) for one in seen] for name in sorted(names)}
    if None not in noted.get(MOVED, [None]):
        noted.pop(PROGRAMS, None)  # of which `moved` is the sum
    return {name: _figure(some) for name, some in noted.items() if None not in some}


def _figure(some: Sequence[Any]) -> Any:
    """Return the pattern of a figure: of what moves, which collectives; of memory, the multiple."""
    tables = [one for one in some if isinstance(one, Mapping)]
    if len(tables) == len(some):
        if all(COLLECTIVES in one for one in tables):
            pinned = {COLLECTIVES: one_of_pattern([one[COLLECTIVES] for one in tables])}
            return _exact(tables, "bytes") | pinned | _exact(tables, "host")
        multiples = [one[MULTIPLE] for one in tables if isinstance(one.get(MULTIPLE), int | float)]
        if len(multiples) == len(some):
            return {MULTIPLE: range_pattern(multiples)}
    return one_of_pattern(some)


def _exact(tables: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return a part that all of these tables have and agree on, with its value."""
    first, *others = (one.get(key) for one in tables)
    return {} if first is None or any(one != first for one in others) else {key: first}


def range_pattern(some: Sequence[float]) -> dict[str, float]:
    """Return the pattern of numbers between the least and the most of these, to two digits."""
    least, most = math.floor(min(some) * 100), math.ceil(max(some) * 100)
    return {AT_LEAST: least / 100, AT_MOST: most / 100}


def one_of_pattern(some: Sequence[Any]) -> str:
    """Return a regular expression that matches the JSON of these values and of no other."""
    texts = dict.fromkeys(json.dumps(one, ensure_ascii=False, sort_keys=True) for one in some)
    patterns = [_SPECIAL.sub(_ESCAPED, one) for one in texts]
    return f"^{patterns[0]}$" if len(patterns) == 1 else f"^({'|'.join(patterns)})$"


def table_of_faults(faults: Sequence[Fault]) -> dict[str, Any]:
    """Return how these cases ended, as far as all agree."""
    table: dict[str, Any] = {"kind": faults[0].kind}
    for key, name in (("signal", "signal"), ("exit", "exit"), ("step", "in_step")):
        values = {getattr(one.processes[0], name) for one in faults if one.processes}
        if len(values) == 1 and (value := values.pop()) not in (None, ""):
            table[key] = value
    return table


def pattern(texts: Iterable[str]) -> str:
    """Return a regular expression that matches the beginning of each text."""
    beginnings: list[str] = []
    for text in dict.fromkeys(texts):
        text = _steady(text)
        for at, known in enumerate(beginnings):
            common = common_beginning(known, text)
            if common and (common in (known, text) or len(common) >= LEAST_IN_COMMON):
                beginnings[at] = common
                break
        else:
            beginnings.append(text)
    patterns = list(dict.fromkeys(_SPECIAL.sub(_ESCAPED, one) or "$" for one in beginnings))
    return f"^{patterns[0]}" if len(patterns) == 1 else f"^({'|'.join(patterns)})"


def common_beginning(one: str, other: str) -> str:
    """Return the common beginning of two texts."""
    least = min(len(one), len(other))
    return one[: next((at for at in range(least) if one[at] != other[at]), least)]


def _steady(text: str) -> str:
    """Return the beginning of a text that will be the same in the next run."""
    text = text.split("\n", 1)[0]
    passing = _PASSING.search(text)
    return text[: min(passing.start() if passing else len(text), MOST_OF_A_TEXT)]
