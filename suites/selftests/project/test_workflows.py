"""The workflows: what they run can be run by hand, by tox; what they use is pinned and no more.

Their form is checked against the published schema where style is checked.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

USES = re.compile(r"uses: (\S+)(.*)")
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")
TOX = re.compile(r"run: tox run -e ([\w-]+)( -- .*)?$")
MAY_WRITE = {"nightly": {"issues"}, "publish": {"pages", "id-token"}}
SET_UP = "run: pip install --quiet tox tox-uv"


def environments() -> set[str]:
    read = configparser.ConfigParser(interpolation=None)
    read.read(ROOT / "tox.ini")
    return {
        name.removeprefix("testenv:") for name in read.sections() if name.startswith("testenv:")
    }


def test_there_are_three() -> None:
    assert [one.stem for one in FILES] == ["ci", "nightly", "publish"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actions_are_pinned_by_hash_and_say_their_version(file: Path) -> None:
    found = USES.findall(file.read_text())
    assert found
    for action, rest in found:
        assert PINNED.fullmatch(action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), f"{action}: name the version of the hash"


def test_one_action_has_one_hash() -> None:
    found = {action for file in FILES for action, _ in USES.findall(file.read_text())}
    assert len({action.split("@")[0] for action in found}) == len(found)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_run_is_a_tox_environment(file: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in file.read_text().splitlines()]
    runs = [line for line in lines if line.startswith("run:") and line not in (SET_UP, "run: |")]
    named = [match[1] for line in runs if (match := TOX.match(line))]
    assert len(named) == len(runs) > 0, runs
    assert set(named) <= environments()
    # What is no tox environment talks to GitHub, and starts nothing of this project.
    assert not any(re.search(r"\b(pytest|python -m)\b", line) for line in lines)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_permissions_are_given_one_by_one(file: Path) -> None:
    text = file.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert "write-all" not in text
    granted = set(re.findall(r"^ +([\w-]+): write", text, re.MULTILINE))
    assert granted == {"nightly": {"issues"}, "publish": {"pages", "id-token"}}.get(
        file.stem, set()
    )
    # Nothing that others write (a title, a branch) is put into a command.
    assert "github.event" not in text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_schema_is_checked_with_style(file: Path) -> None:
    lint = (ROOT / "tox.ini").read_text().partition("[testenv:lint]")[2].partition("[testenv:")[0]
    assert f".github/workflows/{file.name}" in lint


def test_shards_are_all_there() -> None:
    for name, of in (("nightly", 6), ("publish", 12)):
        text = next(one for one in FILES if one.stem == name).read_text()
        numbers = re.search(r"shard: \[(.*)\]", text)
        assert numbers is not None
        assert [int(one) for one in numbers[1].split(",")] == [*range(1, of + 1)]
        assert f'--shard "$SHARD/{of}"' in text
