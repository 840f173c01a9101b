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


def runs() -> list[str]:
    """The first clauses of two runs of the catalogue."""
    return [ids[0] for ids in list(loading.load().runs.values())[:2]]


def test_a_run_shorter_than_the_least_is_not_stored(tmp_path: Path) -> None:
    slow, fast = runs()
    found = written(
        tmp_path,
        cell(slow, seconds=durations.LEAST_S, cpu_seconds=0.25),
        cell(fast, seconds=durations.LEAST_S / 2, cpu_seconds=0.25),
    )
    assert found == {"4x2": {slow: [durations.LEAST_S, 0.2]}}


def test_a_run_that_no_longer_exists_is_forgotten_and_others_stay(tmp_path: Path) -> None:
    slow, other = runs()
    found = written(
        tmp_path,
        cell(slow, seconds=2.0, cpu_seconds=1.0),
        known={"1x8": {other: [3.0, 1.0], "errors.gone": [9.0, 9.0]}},
    )
    assert found == {"1x8": {other: [3.0, 1.0]}, "4x2": {slow: [2.0, 1.0]}}
