"""A wheel of this project runs where no checkout is: its command, its suite, its site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from installed_wheel import ROOT, call, installed

CLAUSE = "rank.argmax.no-axis.1d"
OWN_TEST = """
import sys

def test_nothing_of_ours_is_here(request):
    loaded = {one for one in sys.modules if one.split(".")[0] in ("conformance", "reports")}
    loaded |= {one for one in sys.modules if one.startswith("harness.")} - {"harness.entry"}
    assert loaded == set()
    assert len(request.session.items) == 1
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that has the wheel, of another Python."""
    return installed(tmp_path_factory.mktemp("wheel"))


def test_the_command_runs_a_clause_and_writes_its_site(scripts: Path, tmp_path: Path) -> None:
    command = scripts / "pmap-conformance"
    done = call(command, "run", "--clause", CLAUSE, "--target", "current", folder=tmp_path)
    assert "conforms" in done.stdout
    assert str(ROOT) not in done.stdout + done.stderr
    results = tmp_path / "build" / "results" / "matrix.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    cells = [one for one in lines if one["kind"] == "cell"]
    assert {one["clause"] for one in cells} == {CLAUSE}
    assert {one["verdict"] for one in cells} <= {"conforms", "known deviation", "removed"}
    assert all(one["reproduce"].startswith(f"{command.name} run --clause ") for one in cells)
    call(command, "report", "site", results, "-o", tmp_path / "site", folder=tmp_path)
    assert (tmp_path / "site" / "index.html").is_file()
    assert (tmp_path / "site" / "docs" / "upgrade.html").is_file()
    said = call(command, "results", "summary", tmp_path / "none", folder=tmp_path, status=2)
    assert said.stderr.startswith("pmap-conformance: ")


def test_a_users_own_run_of_pytest_meets_nothing_of_ours(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN_TEST)
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--target')"  # which ours has too
    )
    done = call(scripts / "python", "-m", "pytest", "-q", folder=tmp_path)
    assert "1 passed" in done.stdout


def test_pytest_runs_the_suite_where_it_is_asked_to(scripts: Path, tmp_path: Path) -> None:
    words = ("--pmap-conformance", "--pyargs", "harness.suite", "--clause", CLAUSE, "-n", "1")
    done = call(scripts / "python", "-m", "pytest", *words, folder=tmp_path)
    assert "conforms" in done.stdout
