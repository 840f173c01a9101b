"""pytest inside an allocation, as `salloc` runs it: its nodes are its hosts, divided under `-n`."""

from __future__ import annotations

from pathlib import Path

import pytest
from divided import log_of, run
from processes import FAULTS_ALONE, SUITE
from slurms import NODES, two_nodes

pytestmark = pytest.mark.long

HOSTS = ["--hosts", str(len(NODES)), "--launcher", "slurm"]
SALLOC = ["salloc", f"--nodes={len(NODES)}", "--exclusive"]


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one", "divided"])
def test_pytest_under_salloc_gives_the_same_verdicts(tmp_path: Path, words: tuple[str]) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE)
    (tmp_path / "test_cells.py").write_text(SUITE)
    with two_nodes() as found:
        expected = run(tmp_path, "home.jsonl")
        seen = run(tmp_path, "nodes.jsonl", *HOSTS, *words, front=SALLOC, variables=found)
    assert seen == expected
    said = log_of(tmp_path)
    assert "Granted job allocation" in said
    assert all(f"host {node} (rank " in said for node in NODES)
    assert ("2 hosts divided among -n 2: 1 + 1" in said) == bool(words)
