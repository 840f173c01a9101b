"""A frozen file notices a changed result and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import Record, cell, claim, clause, finding, target, write

from harness.commandline.command import DONE, FOUND
from harness.commandline.main import main

ID = "errors.one"


def records(**changed: Record) -> list[Record]:
    """Two targets, a clause, and a cell of each side; `changed` gives fields of the newer cell."""
    old = cell(
        ID, implementation="legacy_pmap", target="jax==0.8.0", findings=[finding(holds=True)]
    )
    new = cell(
        ID,
        **{"implementation": "new_pmap", "target": "jax==0.9.0", "findings": [finding(holds=True)]}
        | changed,
    )
    expected = {"legacy_pmap": "returns it", "new_pmap": "returns it"}
    head = [target("0.8.0"), target("0.9.0"), claim("migrate-pmap.errors")]
    return [*head, clause(ID, expected=expected), old, new]


def frozen_against(tmp_path: Path, after: list[Record]) -> int:
    """The exit status of comparing `after` with the frozen unchanged records."""
    frozen = tmp_path / "frozen.jsonl"
    before = write(tmp_path / "before.jsonl", records())
    assert main(["dev", "freeze", str(before), "-o", str(frozen)]) == DONE
    return main(
        ["dev", "freeze", str(write(tmp_path / "after.jsonl", after)), "--against", str(frozen)]
    )


def test_equal_results_are_equal(tmp_path: Path) -> None:
    assert frozen_against(tmp_path, records()) == DONE


def test_wording_is_not_frozen(tmp_path: Path) -> None:
    reworded = records(
        reason="in other words", findings=[finding(holds=True, expected="other words")]
    )
    assert frozen_against(tmp_path, reworded) == DONE


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"verdict": "deviates"}, id="verdict"),
        pytest.param({"findings": [finding()]}, id="finding"),
        pytest.param({"findings": [finding(holds=True, code="memory")]}, id="code"),
        pytest.param({"verdict": "crashed"}, id="effect"),
    ],
)
def test_a_changed_result_is_named(
    changed: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert frozen_against(tmp_path, records(**changed)) == FOUND
    out = capsys.readouterr().out
    assert any(line.startswith("-{") and ID in line for line in out.splitlines()), out
    assert any(line.startswith("+{") and ID in line for line in out.splitlines()), out


def test_a_missing_frozen_file_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "x.jsonl", records())
    assert main(["dev", "freeze", str(file), "--against", str(tmp_path / "none")]) == 2
    assert "none: No such" in capsys.readouterr().err
