"""`--target all`: every stable release of the index, asked for by name of none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from harness.targets import target
from harness.targets.interpreters import Interpreter
from harness.targets.target import TargetError

UNREACHABLE = "error: error sending request for url (https://index.invalid/simple/jax/)"
PYTHON = Interpreter(Path("/pythons/3.12"), (3, 12, 1))


def write_script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def index(folder: Path, *releases: str) -> Path:
    """A uv whose index has these releases, oldest first, and answers what is resolved."""
    cases = [f"'jax>{one},<{releases[-1]}') found={after};;" for one, after in pairs(releases)]
    return write_script(
        folder / "uv",
        "wanted=$(cat)",
        'case "$wanted" in',
        f"jax) found={releases[-1]};;",
        *cases,
        '*) echo "no solution" >&2; exit 1;;',
        "esac",
        'echo "jax==$found"',
    )


def pairs(releases: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each release but the last two, with the one after it: the last is an end of the range."""
    return list(pairwise(releases[:-1]))


def expanded(folder: Path, uv: Path, *texts: str) -> list[str]:
    return target.expand_all(texts, cache=folder / "cache", uv=uv, pythons=[PYTHON])


def test_all_is_every_release_of_the_index_patch_releases_too(tmp_path: Path) -> None:
    uv = index(tmp_path, "0.7.0", "0.7.1", "0.9.0", "0.9.0.1", "0.10.0")
    assert expanded(tmp_path, uv, "all") == [
        "jax==0.7.0",
        "jax==0.7.1",
        "jax==0.9.0",
        "jax==0.9.0.1",
        "jax==0.10.0",
    ]


def test_what_else_is_asked_for_stays_and_nothing_comes_twice(tmp_path: Path) -> None:
    uv = index(tmp_path, "0.7.0", "0.7.1", "0.8.0")
    found = expanded(tmp_path, uv, "jax==0.7.1", "all", "current")
    assert found == ["jax==0.7.1", "jax==0.7.0", "jax==0.8.0", "current"]


def test_without_all_no_index_is_asked(tmp_path: Path) -> None:
    assert expanded(tmp_path, tmp_path / "no-uv", "newest", "current") == ["newest", "current"]


def test_without_an_index_all_is_refused(tmp_path: Path) -> None:
    uv = write_script(tmp_path / "uv", f"echo '{UNREACHABLE}' >&2", "exit 2")
    with pytest.raises(TargetError):
        expanded(tmp_path, uv, "all")


def test_one_target_is_not_all_of_them() -> None:
    with pytest.raises(TargetError, match="stands for many; name one"):
        target.parse_spec("all")
