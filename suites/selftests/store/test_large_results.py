"""The generator of large results: it writes what it says, and reports build a site of it."""

from __future__ import annotations

from pathlib import Path

import large_results
import pytest

from conformance.model.verdicts import Verdict
from reports.store.results import load

pytestmark = pytest.mark.long

CELLS = 1000
SECONDS, MIB = 60, 1000  # of what takes a second: this is no measurement


def test_what_is_written_is_read_and_built(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    written = large_results.write(file, CELLS)
    assert CELLS <= written < CELLS + large_results.CELLS_OF_A_CLAUSE
    results = load([file])
    assert len(results.outcomes) == written
    assert {o.verdict for o in results.outcomes.values()} == {
        Verdict.CONFORMS,
        Verdict.KNOWN_DEVIATION,
    }
    wall, cpu, peak = large_results.measured(file, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
    assert 0 < cpu < SECONDS
    assert wall > 0
    assert 0 < peak < MIB


def test_the_memory_of_who_asks_is_not_the_builds(tmp_path: Path) -> None:
    held = b"1" * (MIB << 20)
    large_results.write(tmp_path / "large.jsonl", 1)
    assert 0 < large_results.measured(tmp_path / "large.jsonl", tmp_path / "site")[2] < MIB
    assert held
