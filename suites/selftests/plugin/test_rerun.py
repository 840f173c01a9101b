"""A red cell is run again, alone: red twice is red, red once is flaky, and neither is green."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest
from altered import altered_copy
from msgspec.structs import replace
from processes import HANGS_S, outside_pytest

from conformance.model.records import Cell
from conformance.model.schema import schema
from conformance.model.verdicts import RECORDED, Verdict
from conformance.spec import names
from harness.commandline.main import main
from harness.plugin.rerun import MOST, Rerun, compared, outcome_of
from harness.plugin.session import GREEN, RED
from harness.running.background import Outcome
from harness.running.cells import CellId
from harness.running.pool import Spent
from harness.running.runner import not_run
from reports.store.results import load

PROJECT = Path(__file__).parents[3]
SCHEMA = schema()
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)

CELL = "errors.incompatible-devices.fix-backend-one-device"
RIGHT = "lambda x, ax: x if ax is None else lax.squeeze(x, [ax])"
# The row is reversed in every process, or in those of the first cluster that runs it alone.
EVERY_RUN = "lambda x, ax: x if ax is None else lax.rev(lax.squeeze(x, [ax]), (0,))"
ONE_RUN = (
    "lambda x, ax: x if ax is None else "
    "(lax.rev(lax.squeeze(x, [ax]), (0,)) if __import__('os').environ.setdefault('ALTERED', str("
    "__import__('pathlib').Path({file!r}).exists() or __import__('pathlib').Path({file!r}).touch()"
    ")) == 'None' else lax.squeeze(x, [ax]))"
)


def record(verdict: str, reason: str = "") -> Cell:
    one = not_run(CellId(CELL, names.NEW_PMAP, "1x8", "current"), reason)
    return replace(one, verdict=Verdict(verdict), observations=[{"process": 0}])


@pytest.mark.parametrize("first", RED)
@pytest.mark.parametrize("second", RECORDED)
def test_red_twice_is_red_and_red_once_is_flaky(first: str, second: str) -> None:
    found = compared(record(first, "it returned 3"), record(second, "it returned 4"))
    if second not in GREEN:
        assert found == record(first, "it returned 3")
        return
    assert found.verdict == Verdict.FLAKY
    assert found.reason.endswith("; it returned 3")
    assert found.again is not None
    assert (found.again.verdict, found.again.reason) == (second, "it returned 4")
    assert found.again.observations == found.observations == [{"process": 0}]
    assert outcome_of(found.verdict) not in ("passed", "failed")


@pytest.mark.parametrize("red", [0, 1, MOST, MOST + 3])
def test_so_many_red_cells_are_run_again_and_all_are_reported(red: int) -> None:
    ran: list[str] = []
    reported: list[str] = []
    pool = SimpleNamespace(close=lambda: None, spent=Spent())
    session = SimpleNamespace(
        release=lambda: None, spent=[], make_runner=lambda alone: SimpleNamespace(pool=pool)
    )

    class Noted(Rerun):
        def _again(self, nodeid: str, runner: Any) -> None:
            ran.append(nodeid)
            del self._held[nodeid]

        def _report(self, nodeid: str, outcome: Any) -> None:
            reported.append(nodeid)

    lost = SimpleNamespace(unreported=list)
    rerun = Noted(cast(Any, session), cast(Any, None), cast(Any, lost))
    names = [f"cell {n}" for n in range(red)]
    outcome = Outcome(record(Verdict.DEVIATES), None).dump()
    for name in names:
        rerun.hold(SimpleNamespace(nodeid=name, conformance=outcome))
    loop = rerun.pytest_runtestloop(cast(Any, None))
    next(loop)
    with pytest.raises(StopIteration):
        loop.send(None)
    assert ran + reported == names
    assert (len(ran), rerun.left_out) == (min(red, MOST), max(0, red - MOST))


def run(folder: Path, target: str, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit status, cells and output of a run of one cell."""
    results = folder / "results.jsonl"
    command = [sys.executable, "-m", "pytest", "suites/test_errors.py", "-p", "no:cacheprovider"]
    command += ["--clause", CELL, "--implementation", names.NEW_PMAP, "--topology", "1x8"]
    command += ["--target", target, "--results", str(results), *arguments]
    ran = subprocess.run(
        command,
        cwd=PROJECT,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    cells = [line for line in lines if line["kind"] == "cell"]
    for cell in cells:
        VALIDATOR.validate(cell)
    return ran.returncode, cells, ran.stdout


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "1"), marks=pytest.mark.long)])
def test_a_deviation_of_every_run_is_red(tmp_path: Path, processes: tuple[str, ...]) -> None:
    alter = lambda text: text.replace(RIGHT, EVERY_RUN)  # noqa: E731
    python = altered_copy(tmp_path / "altered", alter, "pmap.py")
    status, (cell,), said = run(tmp_path, str(python), *processes)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert (cell["verdict"], "again" in cell) == (Verdict.DEVIATES, False)
    assert "1 failed" in said


def _altered_once(folder: Path, file: Path) -> Path:
    """Return the Python of a JAX that is wrong in one run: where there is no `file` yet."""
    alter = lambda text: text.replace(RIGHT, ONE_RUN.format(file=str(file)))  # noqa: E731
    return altered_copy(folder / "altered", alter, "pmap.py")


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "1"), marks=pytest.mark.long)])
def test_a_deviation_of_one_run_is_flaky(
    tmp_path: Path, processes: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    python = _altered_once(tmp_path, tmp_path / "ran")
    status, (cell,), said = run(tmp_path, str(python), *processes)
    assert status == pytest.ExitCode.OK
    assert cell["verdict"] == Verdict.FLAKY
    assert cell["again"]["verdict"] in GREEN
    assert cell["observations"] != cell["again"]["observations"]
    assert not all(one["holds"] for one in cell["findings"])
    assert all(one["holds"] for one in cell["again"]["findings"])
    assert "1 flaky" in said
    assert f"FLAKY {CELL}" in said

    (outcome,) = load([tmp_path / "results.jsonl"]).outcomes.values()
    assert outcome.verdict is Verdict.FLAKY
    assert main(["results", "summary", str(tmp_path / "results.jsonl")]) == 0
    assert capsys.readouterr().out.startswith("1 flaky cell:\nFLAKY")


@pytest.mark.long
def test_a_flaky_cell_fails_a_run_that_asks_for_it(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    python = _altered_once(tmp_path, file)
    assert run(tmp_path, str(python), "--fail-on", "flaky")[0] == pytest.ExitCode.TESTS_FAILED
    file.unlink()
    status, (cell,), _ = run(tmp_path, str(python), "--no-rerun")
    assert (status, cell["verdict"]) == (pytest.ExitCode.TESTS_FAILED, Verdict.DEVIATES)
