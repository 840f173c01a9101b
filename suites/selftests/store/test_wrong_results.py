"""Wrong results files that every command refuses in one line, and files without an end that one
accepts.
"""

from __future__ import annotations

import errno
import json
import lzma
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from records import cell, claim, clause, target, timing, write
from sample_results import sample

from conformance.catalogue.causes import load_causes
from conformance.model.records import SCHEMA_VERSION
from conformance.store.errors import ResultsError
from harness.commandline.main import main
from harness.plugin.sharding import durations
from harness.results.gathering import gather
from reports.store.lazily import COPIED, Lazily
from reports.store.results import load

ROOT = Path(__file__).resolve().parents[3]
REFUSED, TERMINATED = 2, 143
DEEP = 2_000_000
PATIENCE_S = 60
HEAD = [target(), claim("migrate-pmap.errors"), clause("errors.a")]


class Nobody:
    """Wants no cell: what is wrong with a file is said all the same."""

    def wants(self, id: object) -> bool:
        return False

    def kept(self, cell: object, target: object, program: str) -> dict[str, object]:
        raise AssertionError


def rejudge(file: Path) -> int:
    return main(["results", "merge", str(file), "-o", str(file.with_name("out.jsonl"))])


def resume(file: Path) -> int:
    """Read the file as a run with `--resume` does."""
    return exit_status(lambda: gather([file], Nobody(), lambda text: None))


def shard(file: Path) -> int:
    """Read the file as a run with `--durations-of` does."""
    return exit_status(lambda: durations(file))


def exit_status(read: Callable[[], object]) -> int:
    try:
        read()
    except ResultsError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return 0


READERS: dict[str, Callable[[Path], int]] = {
    "summary": lambda file: main(["results", "summary", "--no-cache", str(file)]),
    "compare": lambda file: main(["results", "compare", str(file), str(file)]),
    "build": lambda file: main(["report", "site", str(file), "-o", str(file.with_name("site"))]),
    "causes": lambda file: main(["causes", "list", str(file)]),
    "coverage": lambda file: main(["results", "coverage", str(file)]),
    "rejudge": rejudge,
    "resume": resume,
    "shard": shard,
}


def text(*some: object) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in some).encode()


HUGE = json.dumps(timing("errors.a")).replace('"median": 28.0', '"median": 1' + "0" * 400)

# What is in the file, and where and as what every command refuses it.
WRONG: dict[str, tuple[str, bytes, str]] = {
    "a newer schema": (
        "r.jsonl",
        text(target(schema=SCHEMA_VERSION + 98, flux=3)),
        f"r.jsonl:1: .*schema {SCHEMA_VERSION + 98} is newer than {SCHEMA_VERSION}.*update it",
    ),
    "a kind that is not known": (
        "r.jsonl",
        text(*HEAD, {"kind": "flux"}),
        "r.jsonl:4: .*kind is 'flux', not one of: target, ",
    ),
    "a compressed file cut short": (
        "r.jsonl.xz",
        lzma.compress(text(*HEAD, cell("errors.a")))[:-40],
        "r.jsonl.xz: not a whole xz file: .*; name an intact copy",
    ),
    "noise for a compressed file": (
        "r.jsonl.xz",
        bytes(range(256)),
        "r.jsonl.xz: not a whole xz file: ",
    ),
    "two million lists in one another": (
        "r.jsonl",
        text(*HEAD) + b"[" * DEEP + b"]" * DEEP + b"\n",
        "r.jsonl:4: .*nested too deeply",
    ),
    "objects in one another that a parser takes": (
        "r.jsonl",
        text(*HEAD) + b'{"a":' * 500 + b"1" + b"}" * 500 + b"\n",
        "r.jsonl:4: .*nested too deeply",
    ),
    "a number that no float holds": (
        "r.jsonl",
        text(*HEAD) + HUGE.encode() + b"\n",
        "r.jsonl:4: .*no float can hold",
    ),
    "a line that is none": ("r.jsonl", text(*HEAD) + b"{'a': 1}\n", "r.jsonl:4: "),
    "no file": ("", b"", "r.jsonl: cannot be read: No such file or directory"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("reader", READERS)
def test_every_command_refuses_it_in_one_line(
    reader: str, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content, expected = WRONG[wrong]
    if name:
        (tmp_path / name).write_bytes(content)
    assert READERS[reader](tmp_path / (name or "r.jsonl")) == REFUSED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(expected, said)
    assert [one.name for one in tmp_path.iterdir()] == [name] * bool(name)  # nothing is left


def test_causes_reads_a_compressed_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = cell("errors.a", "known deviation")
    cells["deviation"] |= {"cause": next(iter(load_causes()))}
    (tmp_path / "r.jsonl").write_bytes(text(*HEAD, cells))
    (tmp_path / "r.jsonl.xz").write_bytes(lzma.compress(text(*HEAD, cells)))
    said = []
    for name in ("r.jsonl", "r.jsonl.xz"):
        assert main(["causes", "list", str(tmp_path / name)]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "new_pmap on 4x2: 0.9.0 (of 1 " in said[1]


@pytest.mark.parametrize("number", ["1e13", "-1.0", "1" + "0" * 200])
def test_a_timing_beyond_all_bounds_is_refused(number: str, tmp_path: Path) -> None:
    line = json.dumps(timing("errors.a")).replace('"median": 28.0', f'"median": {number}')
    (tmp_path / "r.jsonl").write_bytes(text(*HEAD) + line.encode() + b"\n")
    with pytest.raises(ResultsError, match=r"r\.jsonl:4: .*timing .*ratios"):
        load([tmp_path / "r.jsonl"])


# What is read stays on the disk


def spaced(one: dict[str, Any]) -> bytes:
    return json.dumps(one).encode()


def compact(one: dict[str, Any]) -> bytes:
    return json.dumps(one, separators=(",", ":")).encode()


def in_another_order(one: dict[str, Any]) -> bytes:
    return json.dumps({key: one[key] for key in sorted(one)}).encode()


@pytest.mark.parametrize("form", [spaced, compact, in_another_order])
@pytest.mark.parametrize("filler", [0, COPIED])
def test_the_long_parts_of_cells_stay_on_the_disk(
    form: Callable[[dict[str, Any]], bytes], filler: int, tmp_path: Path
) -> None:
    file = tmp_path / "r.jsonl"
    some = [*HEAD, cell("errors.a"), cell("errors.a", "deviates", implementation="shard_map")]
    some[1] |= {"statement": "x" * filler}  # of a large file, parts are read again where they are
    file.write_bytes(b"".join(form(one) + b"\n" for one in some))
    outcomes = load([file]).outcomes
    assert len(outcomes) == 2
    for outcome in outcomes.values():
        of = outcome.runs[0].cell
        assert isinstance(of.findings, Lazily)
        assert isinstance(of.observations, Lazily)
        assert [one["process"] for one in of.observations] == [0, 1, 2, 3]
        assert [one.holds for one in of.findings] == [of.verdict == "conforms"]


def test_a_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    whole = write(tmp_path / "r.jsonl", sample())
    command = [sys.executable, "-m", "harness.commandline", "results", "summary"]
    said = [
        subprocess.run([*command, name], cwd=ROOT, input=whole.read_bytes(), capture_output=True)
        for name in (str(whole), "/dev/stdin")
    ]
    assert [one.returncode for one in said] == [0, 0]
    assert said[0].stdout == said[1].stdout


# What ends leaves nothing behind


def test_a_rejudging_that_is_terminated_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.jsonl")
    command = [
        sys.executable,
        "-m",
        "harness.commandline",
        "results",
        "merge",
        "r.jsonl",
        "-o",
        "out.jsonl",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        ) as running,
        (tmp_path / "r.jsonl").open("wb") as pipe,
    ):
        pipe.write(text(*HEAD))
        pipe.flush()
        begun = {one.name for one in tmp_path.iterdir()} - {"r.jsonl"}
        running.send_signal(signal.SIGTERM)
        try:
            _, said = running.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # the signal came just before a read that blocks
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=PATIENCE_S)
    assert begun  # it was writing, beside the place
    assert running.returncode == TERMINATED
    assert re.fullmatch(r"pmap-conformance: terminated: .+\n", said)
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl"]


FULL = """
import resource, sys
from harness.commandline.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.exit(main(["results", "merge", "r.jsonl", "-o", "out.jsonl"]))
"""


def test_a_rejudging_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", HEAD)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == REFUSED
    assert done.stderr == f"pmap-conformance: out.jsonl: {os.strerror(errno.EFBIG)}\n"
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl"]


BUILDS = """
import os, signal, sys, time
from pathlib import Path
from conformance.commandline.ending import without_traceback
from reports.render.site.parallel import WORTH, in_parallel
from reports.render.site.write import put, write

def fill(folder):
    def page(number):
        if number == WORTH // 2:
            print(sorted(one.name for one in folder.parent.parent.iterdir()), flush=True)
            os.kill(parent, signal.SIGTERM)
        return put(folder, f"{number}.html", "x")
    yield from in_parallel(page, 100 * WORTH, 2)

parent = os.getpid()
sys.exit(without_traceback(lambda: bool(write(fill, Path("site")))))
"""


def test_a_site_whose_building_is_terminated_leaves_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BUILDS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.startswith("['.site-")  # it was there, beside the place
    assert done.returncode == TERMINATED
    assert re.fullmatch(r"pmap-conformance: terminated: .+\n", done.stderr)
    assert list(tmp_path.iterdir()) == []
