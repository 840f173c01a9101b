"""The page on writing tests: its row, clause and deviation entries work as they are printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import documented
import pytest

PAGE = documented.PROJECT / "docs" / "writing-tests.md"
PACKAGES = ("conformance", "harness", "reports")
ROWS = Path("conformance/sections/indexing/forms.py")
ROWS_BEGIN = "FORMS: Mapping[str, Form] = table(\n"
ENTRIES = Path("conformance/sections/indexing/accesses.toml")
MODULE = Path("conformance/sections/errors/lowered.py")
ENDS_S = 300.0
CONFORMS, RED = 0, 1

pytestmark = pytest.mark.long


def block(language: str, begins: str) -> str:
    """The one block of the page of this language that begins so."""
    found = [
        one.text
        for one in documented.blocks(PAGE)
        if one.language == language and one.text.lstrip().startswith(begins)
    ]
    (text,) = found
    return text


def call(checkout: Path, *words: str, status: int = CONFORMS) -> str:
    """Run our command in a checkout; what it printed."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-m", "harness.commandline", *words],
        cwd=checkout,
        env=own | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def run(checkout: Path, clause: str, status: int = CONFORMS) -> str:
    return call(checkout, "run", "--clause", clause, "--target", "current", status=status)


def add(file: Path, after: str, text: str) -> None:
    """Write `text` into a file after the one place that reads `after`; at its end without one."""
    before = file.read_text(encoding="utf-8")
    assert not after or before.count(after) == 1
    made = before.replace(after, after + text) if after else before + text
    file.write_text(made, encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in PACKAGES:
        shutil.copytree(documented.PROJECT / name, tmp_path / name)
    return tmp_path


def test_the_row_is_red_until_its_deviations_are_added(checkout: Path) -> None:
    row = block("py", ROWS_BEGIN).removeprefix(ROWS_BEGIN).splitlines(keepends=True)[0]
    add(checkout / ROWS, ROWS_BEGIN, row)
    id = "indexing.access.middle"
    assert "all-gather" in run(checkout, id, status=RED)
    entries = block("toml", "[[deviation]]")
    assert str(ENTRIES) in PAGE.read_text(encoding="utf-8")
    add(checkout / ENTRIES, "", f"\n{entries}")
    printed = run(checkout, id)
    assert "known deviation" in printed


def test_the_clause_takes_the_place_of_the_skeleton_and_conforms(checkout: Path) -> None:
    words = block("text", "pmap-conformance new").split()
    id = words[2]
    call(checkout, *words[1:])
    run(checkout, id, status=RED)
    file = checkout / MODULE
    text = file.read_text(encoding="utf-8")
    skeleton = text.index(f'@clause(\n    "{id}"')
    clause = textwrap.dedent(block("py", "@clause("))
    file.write_text(text[:skeleton] + clause, encoding="utf-8")
    assert "conforms" in run(checkout, id)
