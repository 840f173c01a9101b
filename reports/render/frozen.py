"""Freeze what a results file says: one line per cell and per upgrade entry, to compare exactly.

A change of the code that must not change a result is checked against such a file: nothing in it is
text that the report renders, so rewording leaves it equal and a changed result does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reports.analysis.effects.pairs import Effects, Side, sides
from reports.analysis.effects.upgrade import upgrade
from reports.render.site.pairs import pairs
from reports.store.older import code_of
from reports.store.order import LEGACY
from reports.store.outcomes import Outcome
from reports.store.results import Results


def freeze(results: Results) -> Iterator[str]:
    """Yield a JSON line per cell, then one per entry of every upgrade that the site shows."""
    effects = Effects(results)
    legacy = (one for one in sides(results) if one.implementation == LEGACY)
    baseline = next(legacy, None)  # the oldest, so that most cells have an effect
    targets = {target.key: target.target for target in results.targets}
    for key in sorted(results.outcomes, key=str):
        shown = effects.from_baseline(key, baseline)
        outcome = results.outcomes[key]
        yield _line(
            cell=[key.clause, key.implementation, targets[key.target], key.topology],
            verdict=outcome.verdict.value,
            codes=_codes(outcome),
            entry=_deviation(outcome),
            cause=effects.cause_of(key.clause, outcome),
            effect=shown.effect.name if shown is not None else "",
        )
    for pair in pairs(effects):
        yield from sorted(_of_upgrade(effects, pair.old, pair.new))


def _codes(outcome: Outcome) -> list[str]:
    """`step code holds` of each finding, in the order in which they were judged."""
    if not outcome.runs:
        return []
    findings = outcome.runs[-1].cell.findings
    return [f"{one.step} {code_of(one)} {one.holds}" for one in findings]


def _deviation(outcome: Outcome) -> str:
    entry = outcome.runs[-1].cell.deviation if outcome.runs else None
    return "" if entry is None else f"{entry.kind} {entry.cause}"


def _of_upgrade(effects: Effects, old: Side, new: Side) -> Iterator[str]:
    found = upgrade(effects, old, new)
    pair = f"{old}->{new}"
    yield _line(
        upgrade=pair,
        compared=found.compared,
        same=found.same,
        same_cells=found.same_cells,
        missing=[count for _, count in found.missing],
    )
    for entry in found.entries:
        yield _line(
            upgrade=pair,
            group=entry.group.name,
            effect=entry.effect.name,
            cause=entry.cause.cause if entry.cause is not None else "",
            claim=entry.claim,
            seen=[[s.clause, s.topology, s.shown.effect.name, s.shown.step] for s in entry.seen],
            remedies=[[one.help.name, one.clause, *one.works] for one in entry.remedies],
        )


def _line(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The lines that only one of two frozen files has, in order."""

    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.gone or self.new)


def difference(before: Iterable[str], after: Iterable[str]) -> Difference:
    """Compare two frozen files by their lines."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    return Difference(
        tuple(line for line in old if line not in new),
        tuple(line for line in new if line not in old),
    )
