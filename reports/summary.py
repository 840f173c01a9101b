"""Counts of a set of results, as a table for people and as one object for programs.

Both count the whole grid of cells: what no file has is counted as `not run`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from typing import Any

from reports.reading.records import TargetKey
from reports.reading.results import Results
from reports.reading.verdicts import Verdict

Counts = Counter[Verdict]

_ALWAYS_SHOWN = (Verdict.CONFORMS, Verdict.DEVIATES)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with control characters and lone surrogates spelled out.

    Messages and logs carry terminal escapes, and a lone surrogate cannot be written as UTF-8.
    """
    return _UNPRINTABLE.sub(lambda m: ascii(m[0])[1:-1], text)


def counts(results: Results) -> dict[tuple[TargetKey, str], Counts]:
    """Cells by verdict for every target and implementation."""
    found = {
        (target.key, implementation): Counts()
        for target in results.targets
        for implementation in results.implementations
    }
    for key, outcome in results.cells():
        found[key.target, key.implementation][outcome.verdict] += 1
    return found


def total(results: Results) -> Counts:
    """Cells by verdict over everything."""
    return sum(counts(results).values(), Counts())


def as_json(results: Results) -> dict[str, Any]:
    """The summary as one JSON object; targets are named as in `names`, verdicts by their words."""
    by_target: dict[str, dict[str, dict[str, int]]] = {}
    for (key, implementation), counted in counts(results).items():
        by_target.setdefault(results.names[key], {})[implementation] = _words(counted)
    return {
        "targets": [
            {**asdict(t), "name": results.names[t.key], "label": results.labels[t.key]}
            for t in results.targets
        ],
        "topologies": list(results.topologies),
        "implementations": list(results.implementations),
        "clauses": list(results.clauses),
        "claims": results.clauses_of_claims(),
        "cells": {"all": _words(total(results)), "by_target": by_target},
        "notes": list(results.notes),
    }


def as_text(results: Results) -> str:
    """The summary as a table, and below it what is missing."""
    counted = counts(results)
    whole = total(results)
    shown = [v for v in Verdict if v in _ALWAYS_SHOWN or whole[v]]
    rows = [["target", "implementation", *(v.value for v in shown)]]
    for (key, implementation), row in counted.items():
        rows.append([results.labels[key], implementation, *(str(row[v]) for v in shown)])
    rows.append(["total", "", *(str(whole[v]) for v in shown)])
    lines = _table(rows)
    lines.append("")
    lines += [
        f"unavailable: {results.labels[t.key]}: {' '.join(t.unavailable.split())}"
        for t in results.targets
        if t.unavailable
    ]
    gaps = len(results.gaps())
    lines.append(f"claims covered: {len(results.claims) - gaps} of {len(results.claims)}")
    lines += [f"note: {note}" for note in results.notes]
    return printable("\n".join(lines))


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
