"""Cells that mostly wait run beside others, and each is reported once all the same."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import HANGS_S, outside_pytest

from conformance.spec import names
from conformance.worker.deadlines import CASE_S
from harness.running import cells
from harness.running.background import Background
from harness.running.cells import CellId
from harness.running.tiers import Run

PROJECT = Path(__file__).parents[3]
HANGS = "errors.barriers.hand-made-process-missing"  # for five seconds, on four processes


class Runner:
    """Runs `case` in place of a cell; its pool notes that it was closed."""

    def __init__(self, case: Callable[[CellId], None]) -> None:
        self.case = case
        self.facts = {"current": {"jax": "0.9.0"}}
        self.pool = self
        self.closed = threading.Event()

    def run(self, cell: CellId) -> dict[str, Any]:
        self.case(cell)
        return {"clause": cell.clause, "thread": threading.get_ident()}

    def close(self) -> None:
        self.closed.set()


def cell(clause: str) -> tuple[CellId, Run]:
    id = CellId(clause, names.NEW_PMAP, "1x8", "current")
    return id, Run("current", "1x8", clause, names.NEW_PMAP)


def background(case: Callable[[CellId], None], threads: int = 3) -> Background:
    made: Any = lambda: Runner(case)  # noqa: E731
    return Background(made, threads)


def test_cells_wait_beside_one_another() -> None:
    together = threading.Barrier(3)  # nobody passes before three are there
    several = background(lambda _: together.wait(CASE_S) and None)
    started = [cell(name) for name in ("a", "b", "c")]
    for one in started:
        several.start(*one)
    outcomes = [several.result(id) for id, _ in started]
    assert [one.record["clause"] for one in outcomes if one] == ["a", "b", "c"]
    assert all(one.facts == {"jax": "0.9.0"} for one in outcomes if one)
    several.close()


def test_cells_that_judge_one_run_share_a_runner() -> None:
    several = background(lambda _: None)
    (first, run), (second, _), (other, its) = cell("a"), cell("b"), cell("c")
    several.start(first, run)
    several.start(other, its)
    several.start(second, run)
    threads = [several.result(id).record["thread"] for id in (first, second, other)]  # type: ignore[union-attr]
    assert threads[0] == threads[1] != threads[2]
    assert len(several.runners) == 2
    several.close()


def test_what_a_run_raises_is_raised_where_its_result_is_asked_for() -> None:
    def fails(_: CellId) -> None:
        raise ValueError("no such cell")

    several, (id, run) = background(fails), cell("a")
    several.start(id, run)
    with pytest.raises(ValueError, match="no such cell"):
        several.result(id)
    several.close()


def test_a_cell_that_was_not_started_has_no_result() -> None:
    assert background(lambda _: None).result(cell("a")[0]) is None


def test_closing_ends_what_runs_and_begins_nothing_more() -> None:
    begun: list[str] = []
    running = threading.Event()

    def until_closed(id: CellId) -> None:
        begun.append(id.clause)
        running.set()
        (runner,) = several.runners
        assert runner.closed.wait(CASE_S)  # type: ignore[attr-defined]

    several = background(until_closed, threads=1)
    for name in ("a", "b", "c"):
        several.start(*cell(name))
    assert running.wait(CASE_S)
    several.close()
    assert begun == ["a"]


def test_cells_that_wait_are_a_group_of_their_own() -> None:
    nodeid = "suites/test_errors.py::test_errors[errors.a-new_pmap-1x8-current]"
    assert cells.group(nodeid, waits=lambda id: id.clause == "errors.a") == cells.WAITING
    assert cells.group(nodeid, waits=lambda id: id.clause == "errors.b") != cells.WAITING


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "2"), marks=pytest.mark.long)])
def test_each_is_reported_once_among_the_others(tmp_path: Path, processes: tuple[str, ...]) -> None:
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "pytest", "suites/test_errors.py", "-p", "no:cacheprovider"]
    command += ["--clause", HANGS, "--clause", "errors.lowered.several-processes-map"]
    command += ["--topology", "4x2", "--results", str(results), *processes]
    ran = subprocess.run(
        command,
        cwd=PROJECT,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ran.returncode == pytest.ExitCode.OK, ran.stdout + ran.stderr
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    found = [(one["clause"], one["implementation"]) for one in lines if one["kind"] == "cell"]
    assert len(found) == len(set(found))
    assert {clause for clause, _ in found} == {HANGS, "errors.lowered.several-processes-map"}
    last = [clause for clause, _ in found][-1]
    assert last == HANGS, "what waits is reported after the others"
