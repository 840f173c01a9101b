"""Events: what the scanner recognises in a program, where, and with which attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from conformance.catalogue.finds import Find

AND = " and "  # between words of a rule that an attribute must both have

Attributes = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Something recognised at a node; `captures` is the code that a rewrite may use."""

    kind: str
    node: cst.CSTNode
    attributes: Attributes
    captures: Mapping[str, cst.CSTNode] = field(default_factory=dict)

    def key(self) -> tuple[object, ...]:
        """Return what distinguishes it from other events of a program."""
        return self.kind, id(self.node), tuple(sorted((k, v) for k, v in self.attributes.items()))


def matches(find: Find, kind: str, attributes: Attributes) -> bool:
    """Return whether a rule matches an event."""
    if find.event != kind:
        return False
    for key, words in find.where.items():
        there = attributes.get(key, frozenset())
        if words.isdisjoint(there) and not any(_all_of(word, there) for word in words):
            return False
    return all(
        words.isdisjoint(attributes.get(key, frozenset())) for key, words in find.unless.items()
    )


def _all_of(word: str, there: frozenset[str]) -> bool:
    """Return whether all parts of "this and that" are present."""
    return AND in word and all(part in there for part in word.split(AND))
