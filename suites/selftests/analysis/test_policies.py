"""`--fail-on`: each policy fails on what it is about, on nothing else; unknown ones are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from processes import HANGS_S
from records import Record, cell, claim, clause, finding, target, write

from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.main import main
from reports.analysis import fail_on, policies
from reports.store.results import load

WRONG = [finding(code="value")]
CELLS: dict[str, list[Record]] = {
    "nothing": [cell("errors.a")],
    "deviates": [cell("errors.a", "deviates", findings=[finding(code="warning")])],
    "known": [cell("errors.a", "known deviation", findings=[])],
    "crash": [cell("errors.a", "crashed")],
    "hang": [cell("errors.a", "hung")],
    "numbers": [cell("errors.a", "known deviation", findings=WRONG)],
    "missing": [cell("errors.a", "not run")],
}
HEAD = [
    target(),
    claim("migrate-pmap.errors"),
    clause("errors.a", topologies=["4x2"], expected={"new_pmap": "returns"}),
]
FAILS_ON = {
    "nothing": set[str](),
    "deviates": {"red", "deviations"},
    "known": {"deviations"},
    "crash": {"red", "crashes"},
    "hang": {"red", "hangs"},
    "numbers": {"deviations", "wrong-numbers"},
    "missing": {"not-run"},
}


def file(folder: str | Path, name: str, of: str) -> str:
    return str(write(Path(folder, f"{name}.jsonl"), [*HEAD, *CELLS[of]]))


@pytest.mark.parametrize("name", CELLS)
def test_a_run_breaks_the_policies_that_are_about_it(name: str) -> None:
    with TemporaryDirectory() as folder:
        results = load([file(folder, "run", name)])
        counted = policies.of_run(results, fail_on.OF_RUNS)
    assert {one for one, count in counted.items() if count} == FAILS_ON[name]


@pytest.mark.parametrize(
    ("asked", "of", "status"),
    [
        ("crashes", "crash", FOUND),
        ("hangs", "crash", DONE),
        ("red,hangs", "crash", FOUND),
        ("none", "crash", DONE),
        ("none", "nothing", DONE),
    ],
)
def test_summary_exits_by_its_policies(asked: str, of: str, status: int) -> None:
    with TemporaryDirectory() as folder:
        run = file(folder, "run", of)
        assert main(["results", "summary", run, "--fail-on", asked]) == status
        assert main(["results", "summary", run]) == DONE, (
            "by default a summary tells, and judges nothing"
        )


@pytest.mark.parametrize(
    ("name", "before", "after", "asked", "status"),
    [
        ("became worse", "nothing", "crash", None, FOUND),
        ("not asked", "nothing", "crash", "none", DONE),
        ("changed and crashes", "nothing", "crash", "crashes", FOUND),
        ("crashed before", "crash", "crash", "crashes", DONE),
        ("became better", "crash", "nothing", "regressions,crashes,red", DONE),
    ],
)
def test_two_runs_are_judged_by_what_changed(
    name: str, before: str, after: str, asked: str | None, status: int
) -> None:
    option = [] if asked is None else ["--fail-on", asked]
    with TemporaryDirectory() as folder:
        old, new = file(folder, "old", before), file(folder, "new", after)
        for command in (("results", "compare"), ("report", "nightly")):
            assert main([*command, old, new, *option]) == status, (name, command)


def test_what_a_job_writes_to_a_file_fails_only_if_asked() -> None:
    with TemporaryDirectory() as folder:
        old, new = file(folder, "old", "nothing"), file(folder, "new", "crash")
        night = ["report", "nightly", old, new, "-o", str(Path(folder, "issue.md"))]
        assert main(night) == DONE
        assert main([*night, "--fail-on", "regressions"]) == FOUND


def test_an_upgrade_is_judged_by_its_causes(tmp_path: Path) -> None:
    place = {"implementation": "legacy_pmap"}
    expected = {"legacy_pmap": "returns", "new_pmap": "returns"}
    records = [
        *HEAD[:2],
        clause("errors.a", topologies=["4x2"], expected=expected),
        cell("errors.a", **place),
        *CELLS["crash"],
    ]
    run = str(write(tmp_path / "run.jsonl", records))
    sides = ["--from", "legacy_pmap@0.9.0", "--to", "new_pmap@0.9.0"]
    command = ["report", "upgrade", run, *sides, "--fail-on"]
    assert main([*command, "crashes"]) == FOUND
    assert main([*command, "anything"]) == FOUND
    assert main([*command, "raises,wrong-numbers"]) == DONE


@pytest.mark.parametrize("asked", ["crash", "", "red,none", "red,,hangs"])
def test_an_unknown_policy_is_one_line_that_names_the_known(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = file(tmp_path, "run", "nothing")
    assert main(["results", "summary", run, "--fail-on", asked]) == FAILED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for known in fail_on.OF_RUNS:
        assert known in said


def test_a_reader_who_leaves_early_meets_no_traceback(tmp_path: Path) -> None:
    records = [*HEAD[:2], *(clause(f"errors.n{n}") for n in range(2000))]
    run = str(write(tmp_path / "run.jsonl", [*records, cell("errors.n1")]))
    command = (
        f"{sys.executable} -m harness.commandline results summary --format json {run} | head -c 1"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=HANGS_S)
    assert (done.stdout, done.stderr) == ("{", "")
