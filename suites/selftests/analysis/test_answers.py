"""Kept answers of `summary` and `upgrade`: printed again of the same, and of nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from records import cell, claim, clause, target, write

import reports
from conformance.model import records
from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.main import main
from reports.analysis import answers, fail_on, policies
from reports.analysis.answers import Answer, answered
from reports.store import results as reading

MAPS = ("new_pmap", "shard_map")
HEAD = [
    target(),
    claim("migrate-pmap.errors"),
    clause("errors.a", topologies=["4x2"], expected=dict.fromkeys(MAPS, "returns")),
]
GOOD, DIED = Answer("good\n", {"red": 0}), Answer("died\n", {"red": 1})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the answers, which nothing else uses."""
    monkeypatch.setattr(answers, "folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cells = [cell("errors.a", "crashed"), cell("errors.a", implementation="shard_map")]
    return write(tmp_path / "run.jsonl", [*HEAD, *cells])


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each time that results are read."""
    found: list[int] = []
    load = reading.load

    def noted(paths: list[Path]) -> reading.Results:
        found.append(1)
        return load(paths)

    monkeypatch.setattr(reading, "load", noted)
    return found


def never() -> Answer:
    raise AssertionError("made again")


def always(answer: Answer) -> Callable[[], Answer]:
    return lambda: answer


# The commands

SIDES = ("--from", "new_pmap@0.9.0", "--to", "shard_map@0.9.0")


@pytest.mark.parametrize(
    "command",
    [
        ["results", "summary", "--fail-on", "red"],
        ["results", "summary", "--format", "json"],
        ["report", "upgrade", *SIDES],
        ["report", "upgrade", *SIDES, "--format", "markdown"],
    ],
    ids=" ".join,
)
def test_a_second_call_prints_the_same_and_reads_no_results(
    command: list[str],
    folder: Path,
    run: Path,
    loads: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [*command[:2], str(run), *command[2:]]
    told = [(main(command), capsys.readouterr()) for _ in range(3)]
    assert told[0] == told[1] == told[2]
    assert told[0][1].out
    assert len(loads) == 1
    again = main([*command, "--no-cache"]), capsys.readouterr()
    assert again == told[0]
    assert len(loads) == 2


def test_the_exit_status_is_kept(
    folder: Path, run: Path, loads: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    for asked, status in (("red", FOUND), ("hangs", DONE), ("crashes", FOUND), ("none", DONE)):
        assert [main(["results", "summary", str(run), "--fail-on", asked]) for _ in range(2)] == [
            status
        ] * 2
    assert len(loads) == 4
    assert capsys.readouterr().err.count("fails on red 1") == 2


def test_a_file_that_changed_is_read_again(
    folder: Path, run: Path, loads: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", "summary", str(run), "--fail-on", "red"]) == FOUND
    before = run.stat()
    text = run.read_text(encoding="utf-8")
    changed = text.replace('"verdict": "crashed"', '"verdict": "removed"')
    assert len(changed) == len(text)
    assert changed != text
    run.write_text(changed, encoding="utf-8")
    os.utime(run, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a copy may have it
    assert main(["results", "summary", str(run), "--fail-on", "red"]) == DONE
    assert len(loads) == 2


def test_what_cannot_be_read_is_no_answer(
    folder: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write_text("{}\n", encoding="utf-8")
    missing = run.with_name("missing.jsonl")
    for file, said in ((run, "kind is None"), (missing, "No such file")):
        for _ in range(2):
            assert main(["results", "summary", str(file)]) == FAILED
            assert said in capsys.readouterr().err
    assert not list(folder.glob("*"))


# What is kept


def test_other_options_files_or_names_are_other_answers(folder: Path, run: Path) -> None:
    assert answered({"json": True}, [run], always(GOOD)) == GOOD
    assert answered({"json": True}, [run], never) == GOOD
    assert answered({"json": False}, [run], always(DIED)) == DIED
    assert answered({"json": True}, [run, run], always(DIED)) == DIED
    other = run.with_name("other.jsonl")  # a note names the file
    other.write_bytes(run.read_bytes())
    assert answered({"json": True}, [other], always(DIED)) == DIED


def test_another_program_answers_anew(
    folder: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "summary.py"
    source.write_text("SHOWN = 1\n", encoding="utf-8")
    monkeypatch.setattr(answers, "_of_this_program", lambda: [source])
    assert answered({}, [run], always(GOOD)) == GOOD
    assert answered({}, [run], never) == GOOD
    source.write_text("SHOWN = 2\n", encoding="utf-8")
    assert answered({}, [run], always(DIED)) == DIED


def test_every_module_and_table_is_part_of_the_program() -> None:
    package = Path(reports.__file__).parent
    found = {*answers._of_this_program()}
    assert {
        package / "render" / "text" / "summary.py",
        package / "analysis" / "effects" / "upgrade.py",
    } <= found
    assert {*package.rglob("*.toml")} <= found
    assert Path(records.__file__) in found  # of the reader


def whole(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda kept: b"", id="empty"),
        pytest.param(lambda kept: kept[: len(kept) // 2], id="half"),
        pytest.param(lambda kept: kept.replace(b"good", b"evil"), id="another text"),
        pytest.param(lambda kept: b"\xff" * len(kept), id="no text"),
        pytest.param(lambda kept: whole(b"[]"), id="a list"),
        pytest.param(lambda kept: whole(b"{"), id="no JSON"),
        pytest.param(lambda kept: whole(b'{"text": "evil", "counted": {}}'), id="without a key"),
        pytest.param(
            lambda kept: whole(json.dumps({"key": "0", "text": "evil", "counted": {}}).encode()),
            id="of another key",
        ),
        pytest.param(
            lambda kept: whole(kept.partition(b"\n")[2].replace(b'"good\\n"', b"1")),
            id="a number for a text",
        ),
        pytest.param(
            lambda kept: whole(kept.partition(b"\n")[2].replace(b'"red": 0', b'"red": "0"')),
            id="a text for a count",
        ),
    ],
)
def test_a_damaged_or_foreign_answer_is_made_again(
    damage: Callable[[bytes], bytes], folder: Path, run: Path
) -> None:
    assert answered({}, [run], always(GOOD)) == GOOD
    (kept,) = folder.iterdir()
    undamaged = kept.read_bytes()
    kept.write_bytes(damage(undamaged))
    assert kept.read_bytes() != undamaged
    assert answered({}, [run], always(GOOD)) == GOOD
    assert kept.read_bytes() == undamaged, "it is kept again"
    assert answered({}, [run], never) == GOOD


def test_a_file_that_is_written_to_meanwhile_is_not_kept(folder: Path, run: Path) -> None:
    def make() -> Answer:
        with run.open("a", encoding="utf-8") as stream:
            stream.write("\n")
        return GOOD

    assert answered({}, [run], make) == GOOD
    assert not list(folder.glob("*"))


def test_where_nothing_can_be_written_the_answer_is_given(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(answers, "folder", lambda: tmp_path / "file" / "answers")
    assert answered({}, [run], always(GOOD)) == GOOD
    assert answered({}, [run], always(DIED)) == DIED


def test_the_oldest_answers_go(folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_KEPT", 2)
    for number in range(4):
        answered({"number": number}, [run], always(GOOD))
        for kept in folder.iterdir():
            age = kept.stat().st_mtime - 60
            os.utime(kept, (age, age))
    assert len(list(folder.iterdir())) == 2
    assert answered({"number": 3}, [run], never) == GOOD
    assert answered({"number": 0}, [run], always(DIED)) == DIED


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PMAP_CONFORMANCE_CACHE": "/a/b"}, "/a/b/answers"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/pmap-conformance/answers"),
        ({"HOME": "/home/d"}, "/home/d/.cache/pmap-conformance/answers"),
    ],
)
def test_answers_are_kept_beside_the_harnesss_targets(
    variables: dict[str, str], expected: str
) -> None:
    program = (
        "from reports.analysis.answers import folder;"
        "from harness.targets.target import default_cache;"
        "assert folder().parent == default_cache(); print(folder())"
    )
    unset = {"PMAP_CONFORMANCE_CACHE", "XDG_CACHE_HOME"}
    others = {name: value for name, value in os.environ.items() if name not in unset}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=others | variables,
        cwd=Path(answers.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == expected


def test_every_policy_is_counted() -> None:
    assert tuple(policies._OF_CELLS) == fail_on.OF_RUNS
    assert tuple(policies._OF_CAUSES) == fail_on.OF_UPGRADES
