"""An environment that has this project's wheel and no checkout, and commands run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

from harness.targets import interpreters

ROOT = Path(__file__).parents[3]
PACKAGES = ("conformance", "harness", "reports")
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
ENDS_S = 540.0  # with jax to download


def call(*words: object, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(
        [str(one) for one in words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def installed(folder: Path) -> Path:
    """Install the wheel for another Python; the folder of its commands."""
    others = [one for one in interpreters.find() if one.version[:2] > sys.version_info[:2]]
    if not others:
        pytest.skip("this machine has no newer Python than this one")
    source = folder / "source"
    source.mkdir()
    for name in PACKAGES:  # what a build leaves in its folder is not to be in the next wheel
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy(ROOT / name, source / name)
    uv = find_uv_bin()
    call(uv, "build", "--wheel", "--quiet", "--out-dir", folder, source, folder=folder)
    (wheel,) = folder.glob("*.whl")
    call(uv, "venv", "--quiet", "--python", others[0].path, folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    call(uv, "pip", "install", "--quiet", "--python", python, wheel, folder=folder)
    return python.parent
