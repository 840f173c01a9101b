"""The results as files for programs: the matrix, and its counts.

The matrix names each id once and refers to it by number, so that a hundred thousand cells are a
small download; it contains no observations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from conformance.model.records import Target
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.pairs import Effects
from reports.render.site.page import Asset
from reports.render.text.summary import as_json
from reports.store.order import version_order
from reports.store.results import Results

MATRIX, SUMMARY = "data/matrix.json.xz", "data/summary.json"
FORMAT = 1  # of the matrix; what reads it asks for this number


def pages(effects: Effects) -> Iterator[Asset]:
    """Yield two files, on every site."""
    results = effects.every
    yield Asset(MATRIX, lambda: json.dumps(matrix(results), separators=(",", ":")) + "\n")
    yield Asset(SUMMARY, lambda: json.dumps(_summary(results), indent=1) + "\n")


def _summary(results: Results) -> dict[str, Any]:
    """Return the counts; which clauses there are, and of which claims, is in the matrix."""
    whole = as_json(results)
    facts = {"all": whole["facts"]["all"]}
    return {k: v for k, v in whole.items() if k not in ("clauses", "claims")} | {"facts": facts}


def matrix(results: Results) -> dict[str, Any]:
    """Return all recorded cells as rows of indices into the lists of names."""
    clauses = {id: at for at, id in enumerate(results.clauses)}
    targets = {target.key: at for at, target in enumerate(results.targets)}
    implementations = {name: at for at, name in enumerate(results.implementations)}
    topologies = {name: at for at, name in enumerate(results.topologies)}
    verdicts = {verdict: at for at, verdict in enumerate(Verdict)}
    reasons: dict[str, int] = {"": 0}
    causes: dict[str, int] = {"": 0}
    cells = [
        [
            clauses[key.clause],
            targets[key.target],
            implementations[key.implementation],
            topologies[key.topology],
            verdicts[outcome.verdict],
            causes.setdefault(cause_of(outcome), len(causes)),
            reasons.setdefault(outcome.reason, len(reasons)),
        ]
        for key, outcome in results.outcomes.items()
    ]
    return {
        "format": FORMAT,
        "columns": [
            *("clause", "target", "implementation", "topology"),
            *("verdict", "cause", "reason"),
        ],
        "clause": [
            {"id": c.clause, "title": c.title, "section": c.section, "claim": c.claim}
            for c in results.clauses.values()
        ],
        "target": [_target(results, one) for one in results.targets],
        "implementation": list(results.implementations),
        "topology": list(results.topologies),
        "verdict": [verdict.value for verdict in verdicts],
        "cause": list(causes),
        "reason": list(reasons),
        "cells": cells,
    }


def _target(results: Results, target: Target) -> dict[str, Any]:
    order = version_order(target.jax or "")
    core = target.core and asdict(target.core)
    known = {**asdict(target), "packages": dict(target.packages), "core": core}
    return {**known, "label": results.labels[target.key], "release": list(order[1])}
