"""Tests who may write a results file."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.store.errors import ResultsError
from harness.results.results_file import ResultsFile


def test_a_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    first = ResultsFile(tmp_path / "matrix.jsonl")
    with pytest.raises(ResultsError, match="another run is writing it"):
        ResultsFile(tmp_path / "matrix.jsonl")
    first.close()
    ResultsFile(tmp_path / "matrix.jsonl").close()


def test_what_is_no_regular_file_may_have_several() -> None:
    writers = [ResultsFile(Path("/dev/null")) for _ in range(2)]
    for one in writers:
        one.write_line(b"{}\n")
        one.close()
