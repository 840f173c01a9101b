"""Runs pytest on cells of the fault clauses, by one process or divided among several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from processes import gone, new_mark, running_pytest

HOSTS = 4
TOPOLOGIES = ("2x1", "4x1")
CELLS = [word for topology in TOPOLOGIES for word in ("--topology", topology)]
KINDS = ["--clause", "faults.none", "--clause", "faults.wrong-value", "--clause", "faults.exits"]
GONE_S = 40.0
WITHIN_S = 600.0  # several interpreters import jax, on a loaded machine


def arguments(folder: Path, results: str, *words: str) -> list[str]:
    options = ["-c", "/dev/null", "--rootdir", str(folder), "-p", "harness.plugin"]
    options += [*CELLS, *KINDS, "--implementation", "new_pmap", "--results", str(folder / results)]
    return [*options, *words, str(folder / "test_cells.py")]


def run(
    folder: Path,
    results: str,
    *words: str,
    front: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], str]:
    """Verdicts by clause and topology, of a pytest that `front` runs."""
    mark = new_mark()
    environment = {"PMAP_CONFORMANCE_CACHE": str(folder / "cache"), **(variables or {})}
    asked = arguments(folder, results, *words)
    with running_pytest(asked, folder, mark, environment, front) as process:
        assert process.wait(WITHIN_S) == pytest.ExitCode.TESTS_FAILED, log_of(folder)
        assert gone(mark, GONE_S)
    return verdicts(folder / results)


def verdicts(results: Path) -> dict[tuple[str, str], str]:
    lines = map(json.loads, results.read_text().splitlines())
    cells = [one for one in lines if one["kind"] == "cell"]
    found = {(one["clause"], one["topology"]): one["verdict"] for one in cells}
    assert len(found) == len(cells), "a cell was run twice"
    return found


def log_of(folder: Path) -> str:
    return (folder / "pytest.log").read_text()
