"""Folders of test processes: removed at their end, and by others where they were killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.running.scratch import Scratch, sweep

KILLED = """
import os, signal, sys
from pathlib import Path
from harness.running.scratch import Scratch
made = Scratch(Path(sys.argv[1]))
(made.folder / "file").write_text("left")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_is_removed_with_what_is_in_it(tmp_path: Path) -> None:
    made = Scratch(tmp_path)
    (made.folder / "deep" / "er").mkdir(parents=True)
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    (left,) = tmp_path.iterdir()
    assert (left / "file").read_text() == "left"
    made = Scratch(tmp_path)
    assert list(tmp_path.iterdir()) == [made.folder]
    made.close()


def test_what_belongs_to_a_living_process_or_to_others_stays(tmp_path: Path) -> None:
    made = Scratch(tmp_path)
    foreign = tmp_path / "conformance-run-of-somebody-else"
    foreign.mkdir()
    sweep(tmp_path)
    assert made.folder.is_dir()
    assert foreign.is_dir()
    made.close()
