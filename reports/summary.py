"""Counts of a set of results, as a table for people and as one object for programs.

Facts come before cells, as one thing that JAX does may show in dozens of cells. Both count the
whole grid: what no file has is counted as `not run`.
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


def counts_of_facts(results: Results) -> dict[tuple[TargetKey, str], Counts]:
    """Facts by their gravest verdict, for every target and implementation."""
    fact_of = {id: fact for fact, ids in results.facts().items() for id in ids}
    gravest: dict[tuple[TargetKey, str], dict[str, Verdict]] = {key: {} for key in counts(results)}
    for key, outcome in results.cells():
        of = gravest[key.target, key.implementation]
        fact = fact_of[key.clause]
        of[fact] = _graver(of.get(fact, outcome.verdict), outcome.verdict)
    return {key: Counts(of.values()) for key, of in gravest.items()}


def total_of_facts(results: Results) -> Counts:
    """Facts by their gravest verdict over everything."""
    fact_of = {id: fact for fact, ids in results.facts().items() for id in ids}
    gravest: dict[str, Verdict] = {}
    for key, outcome in results.cells():
        fact = fact_of[key.clause]
        gravest[fact] = _graver(gravest.get(fact, outcome.verdict), outcome.verdict)
    return Counts(gravest.values())


def _graver(one: Verdict, other: Verdict) -> Verdict:
    return min(one, other, key=_GRAVEST_FIRST.index)


def total(results: Results) -> Counts:
    """Cells by verdict over everything."""
    return sum(counts(results).values(), Counts())


def as_json(results: Results) -> dict[str, Any]:
    """The summary as one JSON object; targets are named as in `names`, verdicts by their words."""
    by_target: dict[str, dict[str, dict[str, int]]] = {}
    by_column = counts(results)
    for (key, implementation), counted in by_column.items():
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
        "facts": {"all": _words(total_of_facts(results)), "clauses": results.facts()},
        "cells": {"all": _words(sum(by_column.values(), Counts())), "by_target": by_target},
        "notes": list(results.notes),
    }


def as_text(results: Results) -> str:
    """The summary as a table, and below it what is missing."""
    facts, ran = results.facts(), results.ran()
    lines = [*_flaky(results), *_core(results)]
    lines += [f"{len(facts)} facts, each by the gravest of its cells:", ""]
    lines += _counted(results, counts_of_facts(results), total_of_facts(results))
    lines += ["", f"{sum(total(results).values())} cells of {len(results.clauses)} clauses:", ""]
    lines += _counted(results, counts(results), total(results))
    lines.append("")
    lines += [
        f"unavailable: {results.labels[t.key]}: {' '.join(t.unavailable.split())}"
        for t in results.targets
        if t.unavailable
    ]
    if len(ran) < len(results.clauses):
        lines.append(f"clauses with a result: {len(ran)} of {len(results.clauses)}")
    lines.append(claims_said(results))
    lines += [f"note: {note}" for note in results.notes]
    return printable("\n".join(lines))


def _flaky(results: Results) -> list[str]:
    """A line for each cell whose verdict two runs did not agree on."""
    found = [
        f"FLAKY {key.clause} {key.implementation} {key.topology} {results.labels[key.target]}: "
        f"{' '.join(outcome.reason.split())}"
        for key, outcome in results.cells()
        if outcome.verdict is Verdict.FLAKY
    ]
    return [f"{len(found)} flaky cells:", *found, ""] if found else []


def _core(results: Results) -> list[str]:
    """How much of the whole was run, where some target was run by the core tier alone."""
    found = {t.core for t in results.targets if t.core is not None}
    said = [f"core: {one.runs} of {one.of} runs; --tier full runs all" for one in found]
    return [*sorted(said), ""] if said else []


def claims_said(results: Results) -> str:
    """Of how many claims these results tell anything, and how many have no clause at all."""
    ran, claims = results.ran(), results.clauses_of_claims()
    told = sum(bool(ran.intersection(claims[slug])) for slug in results.claims)
    gaps = len(results.gaps())
    return (
        f"claims covered: {told} of {len(results.claims)}"
        + (f", {len(results.claims) - gaps - told} not run" * (told < len(results.claims) - gaps))
        + (f", {gaps} without a clause" if gaps else "")
    )


def _counted(
    results: Results, by_column: dict[tuple[TargetKey, str], Counts], whole: Counts
) -> list[str]:
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
