"""The generator of large results: it writes what it says, and reports build a site of it."""

from __future__ import annotations

from pathlib import Path

import large_results

from reports.reading.results import load
from reports.reading.verdicts import Verdict

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
