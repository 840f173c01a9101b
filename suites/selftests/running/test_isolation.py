"""A run's verdicts do not depend on how it is run, and its results survive its interruption."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import ENDS_S, HANGS_S, before_its_end, gone, new_mark, running_pytest

from conformance.model.schema import schema
from conformance.model.verdicts import Verdict
from conformance.spec import names
from harness.plugin import hooks
from harness.running.cells import CellId
from reports.store.results import load

pytestmark = pytest.mark.long

SUITE = Path(hooks.__file__).resolve().parents[2] / "suites" / "test_errors.py"
SCHEMA = schema()
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)

CLAUSES = tuple(
    f"errors.incompatible-devices.{name}" for name in ("one-device", "replicated", "fix-device-put")
)
IMPLEMENTATIONS = (names.NEW_PMAP, names.SHARD_MAP)
TOPOLOGIES = ("1x8", "2x2")
CHOSEN = tuple(
    f"{SUITE}::test_errors[{CellId(clause, implementation, topology, 'current')}]"
    for topology in TOPOLOGIES
    for clause in CLAUSES
    for implementation in IMPLEMENTATIONS
)
OPTIONS = (
    *("-c", "/dev/null", "--rootdir", str(SUITE.parents[1]), "-p", "harness.plugin"),
    *(word for name in IMPLEMENTATIONS for word in ("--implementation", name)),
    *(word for name in TOPOLOGIES for word in ("--topology", name)),
)

Record = dict[str, Any]


def records(file: Path) -> list[Record]:
    """The file's lines; what a run adds is what the schema says, as the rest is in `recorder`."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if line["kind"] in ("cell", "target"):
            VALIDATOR.validate(line)
    return lines


def cells(lines: list[Record]) -> list[Record]:
    return [line for line in lines if line["kind"] == "cell"]


def verdicts(lines: list[Record]) -> dict[tuple[str, ...], str]:
    key = ("clause", "implementation", "target", "topology")
    return {tuple(cell[k] for k in key): cell["verdict"] for cell in cells(lines)}


def own_locks(folder: Path) -> dict[str, str]:
    """So that no other run of this machine is waited for."""
    return {"PMAP_CONFORMANCE_CACHE": str(folder / "cache")}


def run(folder: Path, *arguments: str) -> list[Record]:
    """The results of one run of the chosen cells."""
    folder.mkdir()
    file = folder / "results.jsonl"
    mark = new_mark()
    options = [*OPTIONS, *arguments, "--results", str(file), *CHOSEN]
    with running_pytest(options, folder, mark, own_locks(folder)) as process:
        code = process.wait(HANGS_S)
        told = (folder / "pytest.log").read_text()
        assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), told
        assert gone(mark, ENDS_S)
    assert file.exists(), told
    return records(file)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return run(tmp_path_factory.mktemp("runs") / "serial")


def test_a_serial_run_records_every_cell_once(serial: list[Record]) -> None:
    assert len(cells(serial)) == len(verdicts(serial)) == len(CHOSEN)
    excused = {Verdict.CONFORMS, Verdict.DEVIATES, Verdict.KNOWN_DEVIATION, Verdict.NOT_APPLICABLE}
    assert set(verdicts(serial).values()) <= excused
    assert Verdict.CONFORMS in verdicts(serial).values()
    ran = [cell for cell in cells(serial) if cell["verdict"] != Verdict.NOT_APPLICABLE]
    assert {cell["fresh"] for cell in ran} == {True, False}, "no cluster was used twice"


def test_two_pytest_processes_come_to_the_same_verdicts(
    serial: list[Record], tmp_path: Path
) -> None:
    parallel = run(tmp_path / "parallel", "-n", "2")
    assert verdicts(parallel) == verdicts(serial)
    assert len(cells(parallel)) == len(cells(serial))
    assert [line["kind"] for line in parallel].count("target") == 1


def test_isolated_cells_come_to_the_same_verdicts(serial: list[Record], tmp_path: Path) -> None:
    isolated = run(tmp_path / "isolated", "--isolated")
    assert verdicts(isolated) == verdicts(serial)
    ran = [cell for cell in cells(isolated) if cell["verdict"] != Verdict.NOT_APPLICABLE]
    assert all(cell["fresh"] for cell in ran)


def test_an_interrupted_run_keeps_what_it_had(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    mark = new_mark()
    options = [*OPTIONS, "--isolated", "--results", str(file), str(SUITE)]
    with running_pytest(options, tmp_path, mark, own_locks(tmp_path)) as process:
        assert before_its_end(
            process, lambda: file.exists() and file.read_text().count('"kind":"cell"') >= 2
        ), (tmp_path / "pytest.log").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == pytest.ExitCode.INTERRUPTED
        assert gone(mark, ENDS_S)
    assert f"run them by --resume {file} " in (tmp_path / "pytest.log").read_text()
    assert len(cells(records(file))) >= 2
    assert len(load([file]).outcomes) >= 2
