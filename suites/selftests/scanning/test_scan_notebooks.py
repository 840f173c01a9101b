"""Notebooks: findings by cell and line; what is no Python in a cell, or no notebook at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from scanned_programs import NEW, OLD, report_of

from conformance.scanning.findings import Report
from conformance.scanning.notebooks import parse_notebook
from conformance.scanning.rendering import as_json, as_text
from conformance.scanning.sarif import as_sarif
from harness.commandline.main import main

MAPS = "import jax\nstep = jax.pmap(lambda x: x + 1)"
INDEX = "print(step(x)[0])"


def notebook(*cells: str, kinds: Sequence[str] = ()) -> str:
    """A notebook of cells, which hold code unless `kinds` says otherwise."""
    some = [
        {"cell_type": kind, "source": text.splitlines(keepends=True)}
        for text, kind in zip(cells, kinds or ["code"] * len(cells), strict=True)
    ]
    return json.dumps({"cells": some, "nbformat": 4})


def scanned(folder: Path, text: str) -> Report:
    (folder / "a.ipynb").write_text(text)
    return report_of(folder)


def spots(report: Report) -> list[tuple[int, int]]:
    return [(one.cell, one.place.line) for one in report.findings]


def test_a_finding_has_its_cell_and_the_line_there(tmp_path: Path) -> None:
    kinds = ("markdown", "code", "code", "code")
    text = notebook("# A title", MAPS, INDEX, f"y = 1\n{INDEX}", kinds=kinds)
    report = scanned(tmp_path, text)
    assert spots(report) == [(3, 1), (4, 2)]
    assert f"{report.findings[0].path}:cell 3:1:7: extra communication" in as_text(report)
    assert [one["cell"] for one in as_json(report)["findings"]] == [3, 4]
    first = as_sarif(report, "scan", "1")["runs"][0]["results"][0]
    assert first["message"]["text"].startswith("Cell 3, line 1: ")
    assert "region" not in first["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    "line",
    ["%matplotlib inline", "!pip install jax", "jax.pmap?", "jax.pmap??", "files = !ls", "%time x"],
)
def test_what_only_a_notebook_takes_is_passed_over(line: str, tmp_path: Path) -> None:
    assert spots(scanned(tmp_path, notebook(f"{line}\n{MAPS}\n{INDEX}"))) == [(1, 4)]
    inner = notebook(MAPS, f"if x:\n    {line}\n    {INDEX}")
    assert spots(scanned(tmp_path, inner)) == [(2, 3)]


def test_cells_of_other_languages_and_broken_ones_are_left_out(tmp_path: Path) -> None:
    text = notebook("%%bash\nrm jax.pmap", "def f(:\n  jax.pmap", MAPS, "%%time\n" + INDEX)
    assert spots(scanned(tmp_path, text)) == [(4, 2)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("jax.pmap", "its JSON cannot be read"),
        ("[" * 100_000, "its JSON cannot be read"),
        ('["jax.pmap"]', "it has no cells"),
        ('{"worksheets": ["jax.pmap"]}', "it has no cells"),
        ("\0", "it has a null character"),
    ],
    ids=["no JSON", "deep", "a list", "format 3", "null"],
)
def test_what_is_no_notebook_is_named(text: str, why: str, tmp_path: Path) -> None:
    report = scanned(tmp_path, text)
    assert [one.path.rpartition("/")[2] for one in report.unread] == ["a.ipynb"]
    assert why in report.unread[0].why


def test_cells_of_any_shape_are_read() -> None:
    cells = [1, {"cell_type": "code"}, {"cell_type": "code", "source": [1, "x = 1"]}, {}]
    assert parse_notebook(json.dumps({"cells": cells})).text.strip() == "x = 1"
    assert parse_notebook('{"cells": []}').cells == ()


def test_a_program_and_a_notebook_of_one_name_are_both_scanned(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"{MAPS}\n{INDEX}\n")
    assert spots(scanned(tmp_path, notebook(MAPS, INDEX))) == [(2, 1), (0, 3)]


def test_fix_leaves_a_notebook_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = notebook(MAPS, INDEX)
    (tmp_path / "a.ipynb").write_text(text)
    main(["scan", str(tmp_path), "--from", OLD, "--to", NEW, "--fix"])
    assert (tmp_path / "a.ipynb").read_text() == text
    assert "0 findings fixed" in capsys.readouterr().err
