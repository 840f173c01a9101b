"""Temporary folders: removed by their owner, and by the next run where it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.worker.folders import OWNER, Scratch, own, sweep

KILLED = """
import os, signal, sys
from pathlib import Path
from conformance.worker.folders import Scratch
made = Scratch("run", Path(sys.argv[1]))
(made.folder / "file").write_text("left")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_is_removed_with_what_is_in_it(tmp_path: Path) -> None:
    with Scratch("run", tmp_path) as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert ended.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert (left / "file").read_text() == "left"
    with Scratch("run", tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_what_a_killed_process_left_is_removed_also_before_its_parent_asks_for_its_end(
    tmp_path: Path,
) -> None:
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    child.wait()


@pytest.mark.parametrize(
    ("owner", "stays"),
    [
        ({}, True),
        ({"started": "1"}, False),  # its id is another process's now
        ({"started": "1", "host": "another"}, True),
        ({"started": "1", "namespace": "pid:[1]"}, True),
        (None, True),
        ({"pid": None}, True),
    ],
    ids=["lives", "ended", "another host", "another container", "no owner", "no pid"],
)
def test_a_folder_stays_unless_its_owner_is_known_to_have_ended(
    tmp_path: Path, owner: dict[str, Any] | None, stays: bool
) -> None:
    folder = tmp_path / "conformance-some"
    folder.mkdir()
    if owner is not None:
        own(folder)
        written = json.loads((folder / OWNER).read_text())
        (folder / OWNER).write_text(json.dumps(written | owner))
    sweep(tmp_path)
    assert folder.exists() is stays


def test_the_folder_of_a_living_process_stays_whoever_sweeps(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from conformance.worker.folders import sweep
sweep(Path({str(tmp_path)!r}))
"""
    with Scratch("run", tmp_path) as folder:
        subprocess.run([sys.executable, "-c", program], check=True)
        assert folder.is_dir()


def test_a_folder_of_another_name_is_never_removed(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / OWNER).write_text("{}")
    sweep(tmp_path)
    assert folder.is_dir()
