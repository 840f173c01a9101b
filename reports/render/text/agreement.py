"""Render an agreement as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from conformance.commandline.counting import counted
from reports.analysis.comparing.agreement import (
    Agreement,
    Found,
    Pair,
    PairCounts,
    Sort,
    Where,
    ordered,
)
from reports.analysis.comparing.fields import FIELDS
from reports.render.text.changes import line
from reports.render.text.summary import printable
from reports.store.order import topology_order, version_order


def as_text(done: Agreement) -> str:
    """Return new differences first, then known ones by explanation, then what was compared."""
    return printable("\n".join(_lines(done)))


def as_json(done: Agreement) -> dict[str, Any]:
    """Return the agreement as one JSON object."""
    return {
        "pairs": [_pair_json(pair, counts) for pair, counts in done.pairs.items()],
        "not_recorded": _not_recorded(done),
        "new": len(done.new),
        "differences": [_found_json(one) for one in ordered(done.found.values())],
        "unused_entries": [entry.where for entry in done.unused],
    }


def _pair_json(pair: Pair, counts: PairCounts) -> dict[str, Any]:
    return {
        **pair._asdict(),
        "cells": counts.cells,
        "not_comparable": counts.without,
        "same": counts.same.total(),
        **{sort.value: counts.differ[sort] for sort in Sort},
    }


def _found_json(found: Found) -> dict[str, Any]:
    return {
        **found.shape._asdict(),
        "between": list(found.shape.between),
        "sort": found.sort.value,
        "by": found.by,
        "says": found.entry.says if found.entry else "",
        "entry": found.entry.where if found.entry else "",
        "new_difference": found.is_new,
        "seen": len(found.seen),
        "clauses": list(found.clauses),
        "jax": versions(found.seen),
        "topologies": topologies(found.seen),
        "example": {**found.seen[0]._asdict(), "pair": found.seen[0].pair._asdict()},
    }


def _lines(done: Agreement) -> Iterator[str]:
    new = list(ordered(done.new))
    if new:
        yield f"new, and undocumented: {len(new)} differences"
        for one in new:
            yield from _found_lines(one)
        yield ""
    known = by_sentence(done)
    if known:
        yield f"known, and undocumented: {len(known)} things"
        for sentence, some in known.items():
            yield f"  {sentence}"
            for one in some:
                yield f"    {describe_difference(one)}"
            yield from _places(where for one in some for where in one.seen)
        yield ""
    for sort in (Sort.BY_CAUSE, Sort.DOCUMENTED):
        yield from _by_slug(done, sort)
    for pair, counts in done.pairs.items():
        if counts.cells:
            differ = ", ".join(f"{counts.differ[sort]} {_SHORT[sort]}" for sort in Sort)
            yield f"{pair}: {counted(counts.cells, 'cell')}, {counts.without} not comparable"
            yield f"      fields: {counts.same.total()} same, {differ}"
    missing = _not_recorded(done)
    if missing:
        yield f"compared nowhere, as no two observations have them: {', '.join(missing)}"
    for entry in done.unused:
        yield f"note: {entry.where} matches nothing here: {entry.says}"
    total = sum(counts.cells for counts in done.pairs.values())
    yield f"{total} pairs of cells compared, {len(new)} new differences"


def by_sentence(done: Agreement) -> dict[str, list[Found]]:
    """Return the undocumented differences that entries describe, by the entry's sentence."""
    found: dict[str, list[Found]] = {}
    for one in ordered(done.found.values()):
        if one.sort is Sort.UNDOCUMENTED and one.entry is not None:
            found.setdefault(one.entry.says, []).append(one)
    return found


_SHORT = {
    Sort.SAME: "for another reason",
    Sort.DOCUMENTED: "as documented",
    Sort.BY_CAUSE: "by cause",
    Sort.UNDOCUMENTED: "undocumented",
}


def _found_lines(found: Found) -> Iterator[str]:
    yield f"  {describe_difference(found)}"
    yield from _places(found.seen)


def _places(some: Iterable[Where]) -> Iterator[str]:
    seen = list(some)
    yield (
        f"      {counted(len(seen), 'time')} in "
        f"{counted(len({one.clause for one in seen}), 'clause')}; "
        f"on jax {', '.join(versions(seen))}; on {', '.join(topologies(seen))}"
    )
    first = seen[0]
    step = f", {first.step}" if first.step else ""
    yield f"      as {first.clause}{step} ({first.topology}): {line(first.seen)}"


def describe_difference(found: Found) -> str:
    """Describe a difference in a line: the pair, the field, its old and new value."""
    shape = found.shape
    return f"{' to '.join(shape.between)}, {shape.field}: {line(shape.old)} → {line(shape.new)}"


def _by_slug(done: Agreement, sort: Sort) -> Iterator[str]:
    """Yield how often each claim or known issue explains a difference."""
    seen: dict[str, list[Where]] = {}
    for one in done.found.values():
        if one.sort is sort:
            seen.setdefault(one.by, []).extend(one.seen)
    if not seen:
        return
    yield f"{sort.value}: {len(seen)} {'causes' if sort is Sort.BY_CAUSE else 'claims'}"
    for slug, places in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0])):
        clauses = counted(len({one.clause for one in places}), "clause")
        yield f"  {line(slug)}: {counted(len(places), 'time')} in {clauses}"
    yield ""


def versions(seen: Iterable[Where]) -> list[str]:
    """Return the JAX versions of the later of the two, in order."""
    return sorted({one.pair.new_jax for one in seen}, key=version_order)


def topologies(seen: Iterable[Where]) -> list[str]:
    """Return the topologies, in order."""
    return sorted({one.topology for one in seen}, key=topology_order)


def _not_recorded(done: Agreement) -> Sequence[str]:
    compared = done.fields
    return [name for name in FIELDS if name not in compared]
