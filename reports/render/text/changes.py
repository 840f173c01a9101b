"""Render a comparison of two runs as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.commandline.counting import counted
from reports.analysis.comparing.changes import Change, Comparison, Group, Kind
from reports.render.text.summary import printable
from reports.store.order import implementation_order, topology_order

MOST_SHOWN = 160  # characters of a reason in a line

_PLURAL = {
    Kind.REGRESSION: "regressions",
    Kind.REPAIR: "repairs",
    Kind.OTHER: "other changes",
}


def as_text(found: Comparison) -> str:
    """Return regressions first, each group with its counts and one of its cells."""
    return printable("\n".join(_lines(found)))


def as_json(found: Comparison) -> dict[str, Any]:
    """Return the comparison as one JSON object with every changed cell."""
    return {
        "targets": [{"old": old, "new": new} for old, new in found.pairs],
        "compared": found.compared,
        "regressions": found.cells(Kind.REGRESSION),
        "repairs": found.cells(Kind.REPAIR),
        "other": found.cells(Kind.OTHER),
        "new": found.new,
        "vanished": found.vanished,
        "groups": [
            {
                "kind": group.kind.value,
                "cause": group.cause,
                "claim": group.claim,
                "title": group.title,
                "cells": [_cell(one) for one in group.changes],
            }
            for group in found.groups
        ],
        "notes": list(found.notes),
    }


def _cell(change: Change) -> dict[str, Any]:
    return {
        "clause": change.key.clause,
        "implementation": change.key.implementation,
        "jax": change.key.target.jax,
        "platform": change.key.target.platform,
        "topology": change.key.topology,
        "old": {"verdict": change.old.verdict.value, "reason": change.old.reason},
        "new": {"verdict": change.new.verdict.value, "reason": change.new.reason},
    }


def _lines(found: Comparison) -> Iterator[str]:
    for old, new in found.pairs:
        yield old if old == new else f"{old} → {new}"
    for kind in Kind:
        groups = found.groups_of(kind)
        if groups:
            yield ""
            numbers = f"{counted(found.cells(kind), 'cell')}, {counted(len(groups), 'cause')}"
            yield f"{_PLURAL[kind]}: {numbers}"
        for group in groups:
            yield from _group(group)
    yield ""
    counts = (f"{found.cells(kind)} {_PLURAL[kind]}" for kind in Kind)
    yield (
        f"{counted(found.compared, 'cell')} in both: {', '.join(counts)}; "
        f"{found.new} new, {found.vanished} vanished"
    )
    for note in found.notes:
        yield f"note: {note}"


def _group(group: Group) -> Iterator[str]:
    named = group.cause or group.claim
    yield f"  {named and f'{named}: '}{line(group.title)}"
    verdicts = Counter(one.verdicts for one in group.changes)
    numbers = ", ".join(f"{count} {words}" for words, count in verdicts.most_common())
    yield f"      {numbers}, in {counted(len(group.clauses), 'clause')}; {_places(group.changes)}"
    first = group.changes[0]
    where = f"{first.key.clause} ({first.key.implementation}, {first.key.topology})"
    yield f"      as {where}: {line(first.new.reason)}"
    if group.kind is not Kind.REGRESSION:
        yield f"      before: {line(first.old.reason)}"


def _places(changes: Iterable[Change]) -> str:
    by_implementation: dict[str, set[str]] = {}
    for one in changes:
        by_implementation.setdefault(one.key.implementation, set()).add(one.key.topology)
    return "; ".join(
        f"{implementation} on {', '.join(sorted(topologies, key=topology_order))}"
        for implementation, topologies in sorted(
            by_implementation.items(), key=lambda item: implementation_order(item[0])
        )
    )


def line(text: str) -> str:
    """Return a text in one line, shortened if it is long."""
    text = " ".join(text.split())
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"
