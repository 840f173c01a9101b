"""Count results, as a table and as JSON.

Facts come before cells, because one behaviour of JAX may show in dozens of cells. Both counts cover
the whole grid: what no file contains counts as `not run`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict

from conformance.commandline.counting import counted
from conformance.model.records import TargetKey
from conformance.model.verdicts import Verdict
from reports.store.results import Results

Counts = Counter[Verdict]
Column = tuple[TargetKey, str]

# What says nothing of a fact comes last: one cell that ran tells more than many that did not.
_GRAVEST_FIRST = (
    Verdict.CRASHED,
    Verdict.HUNG,
    Verdict.DEVIATES,
    Verdict.FLAKY,
    Verdict.KNOWN_DEVIATION,
    Verdict.CONFORMS,
    Verdict.UNKNOWN,
    Verdict.NOT_RUN,
    Verdict.REMOVED,
    Verdict.NOT_APPLICABLE,
    Verdict.LEFT_OUT,
)
_ALWAYS_SHOWN = (Verdict.CONFORMS, Verdict.DEVIATES)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text` with control characters and lone surrogates escaped.

    Messages and logs contain terminal escapes, and a lone surrogate cannot be written as UTF-8.
    """
    return _UNPRINTABLE.sub(lambda m: ascii(m[0])[1:-1], text)


@dataclass(frozen=True)
class Counted:
    """Cells by verdict, and facts by the most severe verdict of their cells.

    Each for every target and implementation, and in total.
    """

    cells: Mapping[Column, Counts]
    facts: Mapping[Column, Counts]
    all_cells: Counts
    all_facts: Counts


def count_results(results: Results) -> Counted:
    """Return all counts of a summary, in one pass over the cells."""
    fact_of = {id: fact for fact, ids in results.facts().items() for id in ids}
    columns = [(t.key, name) for t in results.targets for name in results.implementations]
    cells: dict[Column, Counts] = {column: Counts() for column in columns}
    worst: dict[Column, dict[str, Verdict]] = {column: {} for column in columns}
    of_all: dict[str, Verdict] = {}
    for key, outcome in results.cells():
        column, verdict, fact = (
            (key.target, key.implementation),
            outcome.verdict,
            fact_of[key.clause],
        )
        cells[column][verdict] += 1
        of_column = worst[column]
        of_column[fact] = _worse(of_column.get(fact, verdict), verdict)
        of_all[fact] = _worse(of_all.get(fact, verdict), verdict)
    facts = {column: Counts(verdicts.values()) for column, verdicts in worst.items()}
    return Counted(cells, facts, sum(cells.values(), Counts()), Counts(of_all.values()))


def _worse(one: Verdict, other: Verdict) -> Verdict:
    if one is other:  # of nearly every cell
        return one
    return min(one, other, key=_GRAVEST_FIRST.index)


def as_json(results: Results) -> dict[str, Any]:
    """Return the summary as one JSON object with the names of `names` and verdicts' words."""
    by_target: dict[str, dict[str, dict[str, int]]] = {}
    found = count_results(results)
    for (key, implementation), some in found.cells.items():
        by_target.setdefault(results.names[key], {})[implementation] = _words(some)
    return {
        "targets": [
            {
                **asdict(t),
                "core": t.core and asdict(t.core),
                "name": results.names[t.key],
                "label": results.labels[t.key],
            }
            for t in results.targets
        ],
        "topologies": list(results.topologies),
        "implementations": list(results.implementations),
        "clauses": list(results.clauses),
        "claims": results.clauses_of_claims(),
        "facts": {"all": _words(found.all_facts), "clauses": results.facts()},
        "cells": {"all": _words(found.all_cells), "by_target": by_target},
        "notes": list(results.notes),
    }


def as_text(results: Results) -> str:
    """Return the summary as a table, followed by what is missing."""
    facts, ran, found = results.facts(), results.ran(), count_results(results)
    cells = counted(found.all_cells.total(), "cell")
    lines = [*_flaky(results), *_core(results)]
    lines += [f"{counted(len(facts), 'fact')}, each by its worst cell:", ""]
    lines += _counted(results, found.facts, found.all_facts)
    lines += ["", f"{cells} of {counted(len(results.clauses), 'clause')}:", ""]
    lines += _counted(results, found.cells, found.all_cells)
    lines.append("")
    lines += [
        f"unavailable: {results.labels[t.key]}: {' '.join(t.unavailable.split())}"
        for t in results.targets
        if t.unavailable
    ]
    if len(ran) < len(results.clauses):
        lines.append(f"clauses with a result: {len(ran)} of {len(results.clauses)}")
    lines.append(claims_text(results))
    lines += [f"note: {note}" for note in results.notes]
    return printable("\n".join(lines))


def _flaky(results: Results) -> list[str]:
    """Return a line for each cell whose two runs had different verdicts."""
    found = [
        f"FLAKY {key.clause} {key.implementation} {key.topology} {results.labels[key.target]}: "
        f"{' '.join(outcome.reason.split())}"
        for key, outcome in results.cells()
        if outcome.verdict is Verdict.FLAKY
    ]
    return [f"{counted(len(found), 'flaky cell')}:", *found, ""] if found else []


def _core(results: Results) -> list[str]:
    """Return what share was run, if some target ran only the core tier."""
    found = {t.core for t in results.targets if t.core is not None}
    parts = [f"core: {one.runs} of {counted(one.of, 'run')}; --tier full runs all" for one in found]
    return [*sorted(parts), ""] if parts else []


def claims_text(results: Results) -> str:
    """Return for how many claims these results have cells, and how many have no clause."""
    ran, claims = results.ran(), results.clauses_of_claims()
    tested = sum(bool(ran.intersection(claims[slug])) for slug in results.claims)
    gaps = len(results.gaps())
    return (
        f"claims covered: {tested} of {len(results.claims)}"
        + (
            f", {len(results.claims) - gaps - tested} not run"
            * (tested < len(results.claims) - gaps)
        )
        + (f", {gaps} without a clause" if gaps else "")
    )


def _counted(results: Results, by_column: Mapping[Column, Counts], whole: Counts) -> list[str]:
    shown = [v for v in Verdict if v in _ALWAYS_SHOWN or whole[v]]
    rows = [["target", "implementation", *(v.value for v in shown)]]
    for (key, implementation), row in by_column.items():
        rows.append([results.labels[key], implementation, *(str(row[v]) for v in shown)])
    rows.append(["total", "", *(str(whole[v]) for v in shown)])
    return _table(rows)


def _words(counted: Counts) -> dict[str, int]:
    return {v.value: counted[v] for v in Verdict if counted[v]}


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        words = [
            c.ljust(w) if i < 2 else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(words).rstrip())
    rule = "-" * max(map(len, lines))
    return [lines[0], rule, *lines[1:-1], rule, lines[-1]]
