"""A Python whose JAX was altered on purpose, for tests of what a run then says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import HANGS_S, outside_pytest

PROJECT = Path(__file__).parents[3]


def altered_copy(folder: Path, edit: Callable[[str], str], file: str) -> Path:
    """A Python environment like this one, but for one edited file of its jax."""
    site = Path(sysconfig.get_path("purelib"))
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    copy = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    for entry in site.iterdir():
        # What is installed as editable would bring the controller's own packages along.
        if entry.name != "jax" and not entry.name.startswith(("__editable__", "_virtualenv")):
            (copy / entry.name).symlink_to(entry)
    # With what Python compiled of it: the edited file alone is compiled anew, by its size and time.
    shutil.copytree(site / "jax", copy / "jax")
    source = copy / "jax" / "_src" / file
    before = source.read_text()
    after = edit(before)
    assert after != before, f"nothing to alter in {file}: this JAX is written another way"
    source.write_text(after)
    return python


def cells_of_run(folder: Path, *words: str) -> list[dict[str, Any]]:
    """The records of the cells that pytest runs when it is given these words."""
    results = folder / "results.jsonl"
    options = ["-q", "-p", "no:cacheprovider", "--results", str(results)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *options],
        cwd=PROJECT,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    records = [json.loads(line) for line in results.read_text().splitlines()]
    return [one for one in records if one["kind"] == "cell"]
