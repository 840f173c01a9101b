"""CI runs the README's own command lines."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
README = (PROJECT / "README.md").read_text()
TOX = configparser.ConfigParser(interpolation=None)
TOX.read(PROJECT / "tox.ini")


@pytest.mark.parametrize("job", ["matrix", "test"])
def test_a_job_is_one_line_that_makes_its_own_environment(job: str) -> None:
    lines = [line for line in README.splitlines() if f"tox run -e {job}" in line]
    assert lines[0].strip().startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert lines[0].strip().endswith(f"tox run -e {job}")


@pytest.mark.parametrize("job", ["matrix", "test"])
def test_ci_runs_the_readme_s_own_line(job: str) -> None:
    ci = (PROJECT / ".ci" / "run").read_text()
    assert f'bash -euxc "$(readme {job})"' in ci
    function = re.search(r"^readme\(\) \{\n.*?\n\}\n", ci, re.DOTALL | re.MULTILINE)
    assert function is not None
    found = subprocess.run(
        ["bash", "-c", f"{function[0]}\nreadme {job}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    line = next(line for line in README.splitlines() if f"tox run -e {job}" in line)
    assert found.stdout.strip() == line.strip()


def test_the_test_jobs_are_the_line_that_users_type() -> None:
    line = "pytest -n auto suites/ suites/selftests"
    assert TOX["testenv:test"]["commands"].strip() == f"{line} {{posargs}}"
    assert TOX["testenv:test-all"]["commands"].strip() == f"{line} --long --tier full {{posargs}}"
    assert f"{line} " in (PROJECT / "docs" / "running-tests.md").read_text()


def test_every_night_runs_the_long_self_tests() -> None:
    nightly = (PROJECT / ".github" / "workflows" / "nightly.yml").read_text()
    assert "- run: tox run -e test-all\n" in nightly
