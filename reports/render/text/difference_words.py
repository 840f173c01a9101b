"""Words for a reader of what differs between two runs: the field, and its two values.

Reports as JSON have the names by which fields are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reports.analysis.comparing import fields
from reports.analysis.usercode.runs import Found

NAMES: Mapping[str, str] = {
    fields.SHARDING: "sharding type",
    fields.SPEC: "sharding",
    fields.DEVICES: "devices",
    fields.TREE: "pytree structure",
    fields.KIND: "type",
    fields.COMPILED: "compiled programs",
}
_VALUES: Mapping[tuple[str, str], str] = {
    (fields.SPEC, "not split"): "not sharded",
    (fields.OUTCOME, fields.ABSENT): "not reached",
    (fields.COMPILED, "nothing"): "none",
    (fields.COMPILED, "something"): "some",
    (fields.VALUES, fields.OTHER): "different values",
}
_ARROW = " → "
_SPLIT = re.compile(r"^split along")
_ADDRESS = re.compile(r"<axis 0x[0-9a-f]+>")


@dataclass(frozen=True, slots=True)
class Words:
    """A difference as it is shown; `seen` is empty where it says what the values say."""

    field: str
    old: str
    new: str
    seen: str


def words_of(one: Found) -> Words:
    """Return a difference in words."""
    old, new = (_value(one.field, text) for text in (one.old, one.new))
    seen = named(one.seen)
    if one.field == fields.DEVICES and _ARROW in seen:
        old, new = seen.split(_ARROW, 1)
    shown = "" if seen == f"{old}{_ARROW}{new}" else seen
    return Words(NAMES.get(one.field, one.field), old, new, shown)


def named(text: str) -> str:
    """Return a text in which an axis that has no name is called so, not by its address."""
    return _ADDRESS.sub("<unnamed axis>", text)


def internal(name: str) -> str:
    """Return the name by which a field is compared, of the one that is shown."""
    return next((field for field, shown in NAMES.items() if shown == name), name)


def _value(field: str, text: str) -> str:
    return _SPLIT.sub("sharded along", _VALUES.get((field, text), text))
