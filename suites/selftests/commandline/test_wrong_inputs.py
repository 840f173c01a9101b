"""Each command on a user's own code answers a wrong input by one line, where no checkout is."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed_wheel import ROOT, call, installed
from wrong_inputs import WRONG, Wrong, write_files

from conformance.commandline.ending import PROGRAM

LEAST = 10  # of each command

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("wheel")) / PROGRAM


def test_each_command_has_its_wrong_inputs() -> None:
    for name in ("scan", "compare", "bisect", "launch"):
        assert sum(1 for one in WRONG if one.words[0] == name) >= LEAST


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: " ".join(one.words)[:60])
def test_a_wrong_input_is_answered_by_one_line(wrong: Wrong, command: Path, tmp_path: Path) -> None:
    write_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = call(command, *wrong.words, folder=tmp_path, status=2)
    *progress, last = done.stderr.splitlines()
    assert last.startswith(f"{PROGRAM}: ")
    assert wrong.says in last
    assert all(line.startswith(f"{PROGRAM}: ") for line in progress), done.stderr
    assert "Traceback" not in done.stderr
    assert str(ROOT) not in done.stderr
    assert done.stdout == ""
    assert [one for one in sorted(tmp_path.rglob("*")) if "__pycache__" not in str(one)] == before
