"""Test processes killed before xdist knows them, and those that die too often: nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from processes import ENDS_S, FAULTS_ALONE, HANGS_S, SUITE, gone, new_mark, running_pytest

from conformance.model.verdicts import Verdict
from conformance.spec import names
from harness.plugin.lost import DIED, NEVER_BEGUN
from harness.plugin.replacing import MOST_IN_A_ROW, Starter, watch

# In every Python that execnet starts: it dies at a moment, as often as there are files for it.
DYING = """
import os, pathlib, signal, sys

def die():
    for token in sorted(pathlib.Path(__file__).parent.glob("death-*"))[:1]:
        token.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def asked(event, words):
    if event == "compile" and isinstance(words[0], bytes) and b"rinfo_source" in words[0]:
        die()

def imports(event, words):
    if event == "import" and words[0] == "xdist.plugin":
        die()

if sys.orig_argv[1:3] == ["-u", "-c"]:
    moment = os.environ["DIES"]
    die() if moment == "starts" else sys.addaudithook({"asked": asked, "imports": imports}[moment])
"""
PLAIN = "def test_plain():\n    pass\n"
DIES_OF_A_CELL = """
import os, signal

def pytest_runtest_protocol(item):
    os.kill(os.getpid(), signal.SIGKILL)
"""
# Once, when the cell's verdict has been reported and before its item has ended.
DIES_AFTER_A_CELL = """
import os, pathlib, signal

def pytest_runtest_teardown(item):
    token = pathlib.Path(__file__).with_name("death")
    if token.exists():
        token.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
"""
TOPOLOGIES = ("1x1", "2x1", "1x2")


def _run(folder: Path, words: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """A pytest's status and output; nothing of it may be left."""
    (folder / "temporary").mkdir()
    mark = new_mark()
    options = ["-c", "/dev/null", "--rootdir", str(folder), "-p", "harness.plugin", "-n", "1"]
    own = {"PMAP_CONFORMANCE_CACHE": str(folder / "cache"), "TMPDIR": str(folder / "temporary")}
    with running_pytest([*options, *words], folder, mark, {**own, **variables}) as process:
        status = process.wait(HANGS_S)
        assert gone(mark, ENDS_S)
    return status, (folder / "pytest.log").read_text()


def _dying(folder: Path, moment: str, times: int) -> dict[str, str]:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(DYING)
    for number in range(times):
        (site / f"death-{number}").touch()
    root = Path(__file__).resolve().parents[3]
    return {"PYTHONPATH": f"{site}:{root}", "DIES": moment}


@pytest.mark.parametrize(("moment", "times"), [("starts", 2), ("asked", 1), ("imports", 1)])
def test_one_that_dies_as_it_starts_is_replaced(tmp_path: Path, moment: str, times: int) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE)
    (tmp_path / "test_plain.py").write_text(PLAIN)
    status, told = _run(tmp_path, ["test_plain.py"], _dying(tmp_path, moment, times))
    assert not list((tmp_path / "site").glob("death-*")), "nothing died"
    assert status == pytest.ExitCode.OK, told
    assert "1 passed" in told
    assert told.count("died while it started" if moment != "imports" else "node down") == times


def test_where_every_one_dies_the_run_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE)
    (tmp_path / "test_plain.py").write_text(PLAIN)
    status, told = _run(tmp_path, ["test_plain.py"], _dying(tmp_path, "starts", MOST_IN_A_ROW))
    assert status == pytest.ExitCode.TESTS_FAILED, told
    assert "smaller -n" in told
    assert "INTERNALERROR" not in told


def test_cells_that_no_test_process_was_left_for_are_on_record(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE + DIES_OF_A_CELL)
    (tmp_path / "test_cells.py").write_text(SUITE)
    results = tmp_path / "results.jsonl"
    words = [w for one in TOPOLOGIES for w in ("--topology", one)]
    words += ["--clause", "faults.none", "--clause", "faults.raises"]
    words += ["--implementation", names.NEW_PMAP, "--max-worker-restart", "1"]
    status, told = _run(tmp_path, [*words, "--results", str(results), "test_cells.py"], {})
    assert status == pytest.ExitCode.TESTS_FAILED, told
    cells = [one for one in map(json.loads, results.open()) if one["kind"] == "cell"]
    assert len({(one["clause"], one["topology"]) for one in cells}) == len(cells) == 6
    assert {one["verdict"] for one in cells} == {Verdict.NOT_RUN}
    reasons = Counter(one["reason"] for one in cells)
    assert reasons[NEVER_BEGUN] == 6 - reasons[DIED]
    assert reasons[DIED] in (1, 2)  # who takes a dead one's place runs its cell again
    assert "6 cells: 6 not run" in told


def test_a_cell_that_was_judged_is_not_lost_with_its_test_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE + DIES_AFTER_A_CELL)
    (tmp_path / "test_cells.py").write_text(SUITE)
    (tmp_path / "death").touch()
    results = tmp_path / "results.jsonl"
    words = ["--clause", "faults.none", "--implementation", names.NEW_PMAP, "--no-rerun"]
    words += ["--topology", "1x1", "--results", str(results)]
    status, told = _run(tmp_path, [*words, "test_cells.py"], {})
    assert not (tmp_path / "death").exists(), "nothing died"
    assert status == pytest.ExitCode.TESTS_FAILED, told
    (cell,) = [one for one in map(json.loads, results.open()) if one["kind"] == "cell"]
    assert cell["verdict"] == Verdict.CONFORMS
    assert "died" not in cell["reason"]
    assert "1 cell: 1 conforms" in told


class Group(dict[str, Any]):
    """execnet's gateways by name, as far as a Starter asks."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.ended: list[str] = []

    def allocate_id(self, spec: Any) -> None:
        spec.id, self.count = f"gw{self.count}", self.count + 1

    def register(self, name: str) -> None:
        self[name] = SimpleNamespace(exit=lambda: self.ended.append(self.pop(name).name), name=name)


class Manager:
    """xdist's, whose first test processes fail: `early` of them before execnet knows them."""

    def __init__(self, errors: list[Exception], early: int) -> None:
        self.group = Group()
        self._errors = errors
        self._early = early

    def setup_node(self, spec: Any, putevent: Any) -> str:
        if self._early == 0:
            self.group.register(spec.id)
        self._early = max(0, self._early - 1)
        if self._errors:
            raise self._errors.pop(0)
        return f"node of {spec.id}"


def _spec(group: Group) -> Any:
    spec = SimpleNamespace(id=None)
    group.allocate_id(spec)
    return spec


@pytest.mark.parametrize(
    ("errors", "early", "node", "ended"),
    [
        ([], 0, "node of gw0", []),
        ([EOFError("nothing")], 1, "node of gw1", []),
        ([EOFError("nothing")], 0, "node of gw1", ["gw0"]),
        ([BrokenPipeError(), OSError("closed")], 1, "node of gw2", ["gw1"]),
    ],
    ids=["alive", "early", "known", "twice"],
)
def test_a_starter_asks_again_under_another_name(
    errors: list[Exception], early: int, node: str, ended: list[str]
) -> None:
    manager = Manager(list(errors), early)
    died: list[str] = []
    starter = Starter(manager, MOST_IN_A_ROW, lambda name, why: died.append(name))
    assert starter(_spec(manager.group), None) == node
    assert died == [f"gw{n}" for n in range(len(errors))]
    assert manager.group.ended == ended


def test_a_starter_passes_on_what_is_no_death() -> None:
    manager = Manager([ValueError("a slip")], 0)
    with pytest.raises(ValueError, match="a slip"):
        Starter(manager, MOST_IN_A_ROW, lambda name, why: None)(_spec(manager.group), None)


@pytest.mark.parametrize(
    ("restarts", "attempts"), [(None, MOST_IN_A_ROW), ("0", 1), ("2", 3), ("99", MOST_IN_A_ROW)]
)
def test_who_asks_xdist_for_fewer_restarts_gets_fewer(restarts: str | None, attempts: int) -> None:
    manager = Manager([EOFError("nothing") for _ in range(MOST_IN_A_ROW)], MOST_IN_A_ROW)
    config: Any = SimpleNamespace(
        pluginmanager=SimpleNamespace(getplugin=lambda _: SimpleNamespace(nodemanager=manager)),
        getoption=lambda _: restarts,
    )
    died: list[str] = []
    watch(config, lambda name, why: died.append(name))
    with pytest.raises(pytest.exit.Exception, match=f"of {attempts} tried"):
        manager.setup_node(_spec(manager.group), None)
    assert len(died) == attempts
