"""Rules that depend on what the scanned tree requires."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanned_programs import report_of

PROGRAM = "from flax import jax_utils\nimport jax\nstate = jax_utils.replicate({})\n"
SETUP = 'from setuptools import setup\nsetup(install_requires=["jax", "flax{}"])\n'


@pytest.mark.parametrize(
    "versions", ["", ">=0.10", ">0.12.6rc1", "~=0.12", "==0.12.*", "<0.13", "==0.10.4"]
)
def test_replicate_of_flax_is_found_where_an_old_flax_is_allowed(
    versions: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "requirements.txt").write_text(f"jax\nflax{versions}\n")
    assert f"{tmp_path}/train.py:3" in {one.spot for one in report_of(tmp_path).findings}


@pytest.mark.parametrize("versions", [">=0.12.7", ">0.12.6", "==0.12.8", "~=0.12.7", ">=0.13,<1"])
@pytest.mark.parametrize("file", ["requirements.txt", "setup.py", "pyproject.toml"])
def test_replicate_of_flax_is_no_finding_where_only_a_working_flax_is_allowed(
    versions: str, file: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    text = f'dependencies = ["flax{versions}"]\n' if file.endswith("toml") else f"flax{versions}\n"
    (tmp_path / file).write_text(SETUP.format(versions) if file == "setup.py" else text)
    assert report_of(tmp_path).findings == ()


def test_one_of_several_requirements_that_allows_an_old_flax_is_enough(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "requirements.txt").write_text("flax>=0.12.7\n")
    (tmp_path / "requirements-old.txt").write_text("flax>=0.10\n")
    assert len(report_of(tmp_path).findings) == 1


def test_a_pin_of_setup_py_is_found(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP.format("==0.8.5"))
    assert [one.place.line for one in report_of(tmp_path).findings] == [2]
