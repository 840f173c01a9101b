"""`results durations`: which runs' durations are stored, and which are forgotten."""

from __future__ import annotations

import json
from pathlib import Path

from records import Record, cell, clause, target, write

from conformance.catalogue import loading
from harness.results import durations


def written(tmp_path: Path, *cells: Record, known: object = None) -> dict[str, dict[str, object]]:
    """Return what is stored of these cells beside what was `known`."""
    output = tmp_path / "durations.json"
    if known is not None:
        output.write_text(json.dumps(known))
    ids = dict.fromkeys(one["clause"] for one in cells)
    results = write(tmp_path / "r.jsonl", [target(), *map(clause, ids), *cells])
    durations.write([results], output)
    stored: dict[str, dict[str, object]] = json.loads(output.read_text())
    return stored


def runs(count: int = 2) -> list[str]:
    """The first clauses of some runs of the catalogue."""
    return list(dict.fromkeys(ids[0] for ids in loading.load().runs.values()))[:count]


def test_a_run_that_takes_and_computes_less_than_the_least_is_not_stored(tmp_path: Path) -> None:
    slow, busy, fast = runs(3)
    found = written(
        tmp_path,
        cell(slow, seconds=durations.LEAST_S, cpu_seconds=0.0),
        cell(busy, seconds=0.25, cpu_seconds=durations.LEAST_BUSY_S),
        cell(fast, seconds=0.25, cpu_seconds=durations.LEAST_BUSY_S / 2),
    )
    assert found == {"4x2": {slow: [durations.LEAST_S, 0.0], busy: [0.2, durations.LEAST_BUSY_S]}}


def test_a_run_that_no_longer_exists_is_forgotten_and_others_stay(tmp_path: Path) -> None:
    slow, other = runs()
    found = written(
        tmp_path,
        cell(slow, seconds=2.0, cpu_seconds=1.0),
        cell("errors.gone", seconds=2.0, cpu_seconds=1.0),
        known={"1x8": {other: [3.0, 1.0], "errors.gone": [9.0, 9.0]}},
    )
    assert found == {"1x8": {other: [3.0, 1.0]}, "4x2": {slow: [2.0, 1.0]}}
