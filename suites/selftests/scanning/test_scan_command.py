"""`pmap-conformance scan`: its formats, exit status, wrong inputs, bounds, and `--fix`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from processes import MARK, before_its_end, end, gone, new_mark, outside_pytest, pids

from conformance.commandline.ending import EXIT_TERMINATED
from conformance.scanning import sources
from conformance.scanning.rendering import escaped
from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.main import main

SIDES = ("--from", "legacy_pmap@0.8.3", "--to", "new_pmap@0.12.0.1")
INDEX = """import jax

f = jax.pmap(lambda x: x + 1)


def main(x):
    return f(x)[0]  # the first
"""
INDEXED = ("index-replicates-the-row", "index-raises-no-copy-arrays")
CLEAN = "import jax\n\nf = jax.jit(lambda x: x + 1)\n"
TERMINATED_S = 10.0  # far less than its processes need for the files that they have
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def scanned(capsys: Capture, *words: str, status: int = FOUND) -> str:
    assert main(["scan", *words, *SIDES]) == status
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "side"), [("0.7.2", "legacy_pmap@0.7.2"), ("0.8.3", "new_pmap@0.8.3")]
)
def test_a_version_alone_is_the_pmap_that_is_its_default(
    version: str, side: str, folder: Path, capsys: Capture
) -> None:
    write(folder, a=INDEX)
    main(["scan", "a.py", "--from", version, "--to", "0.12.0.1"])
    assert f"from {side} to new_pmap@0.12.0.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("imported", "after"),
    [
        ("MutableArray as Cell", "from jax import Ref as Cell"),
        ("MutableArray", "from jax import Ref as MutableArray"),
        ("MutableArray as Ref", "from jax import Ref"),
    ],
)
def test_a_removed_name_is_imported_as_the_same_variable(
    imported: str, after: str, folder: Path, capsys: Capture
) -> None:
    write(folder, a=f"from jax.experimental import {imported}\n")
    assert f"    after:  {after}\n" in scanned(capsys, "a.py")


def as_json(capsys: Capture, *words: str, status: int = FOUND) -> Any:
    return json.loads(scanned(capsys, *words, "--format", "json", status=status))


# What it prints


def test_a_finding_has_its_place_line_change_and_edit(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX)
    text = scanned(capsys, "a.py")
    assert text.startswith("a.py:7:12: extra communication: ")
    for part in (INDEX.splitlines()[-1], "outputs.unreplicate.shard.rows"):
        assert part in text
    assert "    after:  f(x).addressable_shards[0].data.squeeze(0)\n" in text
    last = text.splitlines()[-1]
    assert last.startswith("1 finding ")
    for part in (*SIDES[1::2], "extra communication: 1"):
        assert part in last


def test_json_has_all_of_a_finding(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX)
    report = as_json(capsys, ".")
    (found,) = report["findings"]
    assert (report["from"], report["to"]) == SIDES[1::2]
    assert (found["path"], found["line"], found["column"]) == ("a.py", 7, 12)
    assert found["source"] == INDEX.splitlines()[-1]
    assert found["issue"] == "index-replicates-the-row"
    assert found["severity"] == "extra communication"
    assert found["before"] == "f(x)[0]"
    assert found["proved_by"] == "outputs.unreplicate.shard.rows"
    assert found["links"]
    assert found["edit"]


def test_sarif_has_rules_results_and_fixes(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX)
    (run,) = json.loads(scanned(capsys, "a.py", "--format", "sarif"))["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    first = run["results"][0]
    assert rules[first["ruleIndex"]] == first["ruleId"] == "index-replicates-the-row"
    region = first["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (7, 12)
    (change,) = first["fixes"][0]["artifactChanges"]
    assert "squeeze(0)" in change["replacements"][0]["insertedContent"]["text"]
    assert first["level"] == "warning"


def test_markdown_has_a_section_for_each_issue(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX, b=INDEX)
    text = scanned(capsys, ".", "--format", "markdown")
    assert text.count("\n## ") == 1
    assert f"- a.py:7: `{INDEX.splitlines()[-1].strip()}`" in text


def test_a_report_is_written_where_it_is_to_go(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX)
    assert scanned(capsys, "a.py", "--format", "json", "-o", "out.json").startswith("1 finding ")
    assert json.loads((folder / "out.json").read_text())["findings"]


# Its exit status


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        (CLEAN, (), DONE),
        (INDEX, (), FOUND),
        (INDEX, ("--fail-on", "none"), DONE),
        (INDEX, ("--fail-on", "error"), DONE),
        (INDEX, ("--fail-on", "extra communication"), FOUND),
        (INDEX, ("--fail-on", "warning"), FOUND),
        (INDEX, [f"--ignore={issue}" for issue in INDEXED], DONE),
        (INDEX, ("--exclude", "*"), FAILED),
        (INDEX, ("--processes", "one"), FOUND),
    ],
)
def test_the_exit_status_says_whether_anything_was_found(
    text: str, words: tuple[str, ...], status: int, folder: Path
) -> None:
    write(folder, a=text)
    assert main(["scan", ".", *SIDES, *words]) == status


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.py", *SIDES), "none.py: there is no such file or folder"),
        (
            ("empty", *SIDES),
            "empty: no Python file, script or requirements file is in it: name another path",
        ),
        (("a.py",), "--from: name the version, as in --from 0.9.0"),
        (("a.py", "--from", "new_pmap@0.9.0"), "--to: name the version"),
        (("a.py", "--from", "new_pmap", "--to", "0.9.0"), "--from new_pmap: write IMPLEMENT"),
        (
            ("a.py", "--from", "0.9.9", "--to", "0.12.0.1"),
            "new_pmap@0.9.9: the published matrix has",
        ),
        (
            ("a.py", "--from", "new_pmap@0.9.9", "--to", "new_pmap@0.12.0.1"),
            "on JAX 0.7.0, 0.7.1",
        ),
        (
            ("a.py", "--from", "new_pmap@0.9.0", "--to", "new_pmap@0.8.3"),
            "name the JAX of new_pmap@0.9.0 or a newer one",
        ),
        (("a.py", *SIDES, "--fail-on", "bad"), "--fail-on bad: there are crash, hang"),
        (
            ("a.py", *SIDES, "--ignore", "index"),
            "there is no known issue of that name; did you mean",
        ),
        (("a.py", *SIDES, "--jobs", "0"), "--jobs: '0': give a whole number from 1"),
        (("a.py", *SIDES, "--format", "yaml"), "invalid choice: 'yaml'"),
        (SIDES, "the following arguments are required: PATH"),
    ],
)
def test_a_wrong_input_is_one_line(
    words: tuple[str, ...], says: str, folder: Path, capsys: Capture
) -> None:
    write(folder, a=INDEX)
    (folder / "empty").mkdir()
    assert main(["scan", *words]) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert re.fullmatch(r"pmap-conformance: .+\n", said.err)


# What is left out


@pytest.mark.parametrize(
    ("comment", "status"),
    [
        ("# pmap-conformance: ignore", DONE),
        ("# pmap-conformance: ignore[index-replicates-the-row]", DONE),
        ("# pmap-conformance: ignore[nested-pmap-refused, index-replicates-the-row]", DONE),
        ("# pmap-conformance: ignore[nested-pmap-refused]", FOUND),
        ("# ignore", FOUND),
    ],
)
def test_a_comment_leaves_a_finding_out(comment: str, status: int, folder: Path) -> None:
    write(folder, a=INDEX.replace("# the first", comment))
    assert main(["scan", "a.py", *SIDES]) == status


def test_a_file_leaves_all_out(folder: Path) -> None:
    write(folder, a=f"# pmap-conformance: ignore-file\n{INDEX}")
    assert main(["scan", "a.py", *SIDES]) == DONE


def test_a_project_configures_its_scans(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX)
    table = """[tool.pmap-conformance]
from = "legacy_pmap@0.8.3"
to = "new_pmap@0.12.0.1"
fail-on = "error"
"""
    (folder / "pyproject.toml").write_text(table)
    assert main(["scan", "."]) == DONE
    said = capsys.readouterr().out
    assert "1 finding " in said
    assert "legacy_pmap@0.8.3" in said
    (folder / "pyproject.toml").write_text(table.replace("fail-on", "exclude = ['a*']\nfail-on"))
    assert main(["scan", "."]) == DONE
    assert "0 findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("form = 'x'", "has no form; it has from, to, fail-on, exclude, ignore"),
        ("from = 3", "from must be a text"),
        ("exclude = 'x'", "exclude must be a list of texts"),
        ("from = ", "pyproject.toml is not valid TOML"),
    ],
)
def test_a_wrong_configuration_is_one_line(
    line: str, says: str, folder: Path, capsys: Capture
) -> None:
    write(folder, a=INDEX)
    (folder / "pyproject.toml").write_text(f"[tool.pmap-conformance]\n{line}\n")
    assert main(["scan", "a.py", *SIDES]) == FAILED
    assert says in capsys.readouterr().err


# What it does not do


def test_nothing_that_is_scanned_is_run(folder: Path) -> None:
    (folder / "jax.py").write_text("raise SystemExit('imported')\n")
    write(folder, a=f"open('trace', 'w')\n{INDEX}", conftest="raise SystemExit('imported')\n")
    assert main(["scan", ".", *SIDES]) == FOUND
    assert not (folder / "trace").exists()


def test_no_link_is_followed_out_of_the_tree(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Capture
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "b.py").write_text(INDEX)
    (folder / "tree").mkdir()
    (folder / "tree" / "a.py").write_text(CLEAN)
    (folder / "tree" / "link.py").symlink_to(outside / "b.py")
    (folder / "tree" / "inside.py").symlink_to(folder / "tree" / "a.py")
    (folder / "tree" / "all").symlink_to(outside)
    report = as_json(capsys, "tree", status=DONE)
    (left,) = report["not_scanned"]
    assert left["path"] == "tree/link.py"
    assert "link" in left["why"]
    assert report["files"] == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"jax.pmap(" * 3000 + b")" * 3000, "nested"),
        (b"x = " + b"-" * 5000 + b"1  # pmap", "nested"),
        (b"x = 1" + b" + 1" * 5000 + b"  # pmap", "nested"),
        (b"x = a" + b".pmap" * 5000, "nested"),
        (b"pmap = (", "never closed"),
        (b"pmap\0", "null character"),
        (b"\xff\xfe\xfa pmap", "not valid text"),
        (b"# pmap\n" * 200_000, "larger than 1 MiB"),
        (b"print 'pmap'", "Missing parentheses"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_scanned(
    data: bytes, why: str, folder: Path, capsys: Capture
) -> None:
    (folder / "bad.py").write_bytes(data)
    write(folder, good=INDEX)
    report = as_json(capsys, ".")
    assert [one["path"] for one in report["findings"]] == ["good.py"]
    (left,) = report["not_scanned"]
    assert left["path"] == "bad.py"
    assert why in left["why"]


def test_control_characters_of_a_line_are_spelled_out(folder: Path, capsys: Capture) -> None:
    write(folder, a=INDEX.replace("# the first", "# \x1b[31m \u202e \x07"))
    for words in ((), ("--format", "markdown"), ("--format", "sarif")):
        text = scanned(capsys, "a.py", *words)
        assert escaped(text) == text
        assert "x1b[31m" in text


@pytest.mark.parametrize("depth", [10, sources.MOST_DEPTH + 10])
def test_depth_is_bounded(depth: int) -> None:
    text = f"x = {'[' * depth}{']' * depth}"
    if depth < sources.MOST_DEPTH:
        sources.check_depth(text)
    else:
        with pytest.raises(sources.UnreadableError, match="nested"):
            sources.check_depth(text)


# --fix

PROGRAM = '''"""A program."""
import functools

import jax
import jax.numpy as jnp  # numbers

jax.config.update("jax_pmap_shmap_merge", True)


@functools.partial(jax.pmap, axis_name="i")
def step(w, x):
    return w, {"loss": jax.lax.pmean((w * x).sum(), "i")}


def main(devices):
    w = jax.device_put_replicated(jnp.ones(3), devices)  # copies
    x = jax.device_put_sharded([jnp.ones(3) for _ in devices], devices)
    w, metrics = step(w, x)
    if devices:
        jax.config.update("jax_pmap_shmap_merge", True)
    mesh = jax.make_mesh((len(devices),), ("i",))
    return (metrics["loss"][0],  # first
            jax.tree.map(lambda a: (a)[0], w), mesh)
'''


def test_a_diff_is_printed_and_nothing_is_written(folder: Path, capsys: Capture) -> None:
    write(folder, a=PROGRAM)
    text = scanned(capsys, "a.py", "--diff", status=DONE)
    assert text.startswith("--- a/a.py\n+++ b/a.py\n")
    assert (folder / "a.py").read_text() == PROGRAM


def test_no_fix_writes_what_only_one_call_shows(folder: Path, capsys: Capture) -> None:
    program = """
import jax
double = jax.pmap(lambda x: 2 * x)
def device_row(value, n):
    return value[n]
def main(x):
    return device_row(double(x), 0)
"""
    write(folder, a=program)
    scanned(capsys, "a.py", "--fix", status=DONE)
    assert (folder / "a.py").read_text() == program
    write(folder, a=program.replace("value[n]", "value[0]"))
    scanned(capsys, "a.py", "--fix", status=DONE)
    assert "return value.addressable_shards[0]" in (folder / "a.py").read_text()


def test_fixes_keep_comments_and_formatting_and_name_their_clauses(
    folder: Path, capsys: Capture
) -> None:
    write(folder, a=PROGRAM)
    said = scanned(capsys, "a.py", "--fix", status=DONE)
    fixed = (folder / "a.py").read_text()
    cst.parse_module(fixed)
    for clause in (
        "outputs.unreplicate.shard.rows",
        "drop_in.sharded.float32.np-stack",
        "drop_in.replicated.float32.np-broadcast",
    ):
        assert clause in said
    for removed in ("jax_pmap_shmap_merge", "device_put_", '["loss"][0]'):
        assert removed not in fixed
    for kept in ("  # numbers\n", "  # copies\n", ",  # first\n            jax.tree.map("):
        assert kept in fixed
    assert "numpy as np" in fixed
    assert "        pass\n" in fixed
    assert "(a).addressable_shards[0]" in fixed
    assert 'axis_types=(jax.sharding.AxisType.Auto,) * len(("i",))' in fixed
    assert said.splitlines()[-1].startswith("0 findings ")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(INDEX.replace("x + 1)", "x + 1, out_axes=AXIS)"), id="out_axes"),
        pytest.param(INDEX.replace("[0]", "[1]"), id="another row"),
        pytest.param(INDEX.replace("[0]", "[0, 1]"), id="two indices"),
        pytest.param(INDEX.replace("lambda x: x + 1", "unknown"), id="unknown body"),
        pytest.param(INDEX.replace("[0]", ".reshape(-1)[0]"), id="another shape"),
        pytest.param(
            'import jax\njax.config.update("jax_pmap_shmap_merge", False)\n', id="legacy pmap"
        ),
    ],
)
def test_what_no_clause_proves_is_not_rewritten(text: str, folder: Path, capsys: Capture) -> None:
    write(folder, a=text)
    said = scanned(capsys, "a.py", "--fix", status=DONE)
    assert (folder / "a.py").read_text() == text
    assert "1 finding" in said


@pytest.mark.parametrize(
    ("maps", "axis"),
    [
        ("f = jax.pmap(g, axis_name='device')", "device"),
        ("f = jax.pmap(g, 'batch')", "batch"),
        ("f, h = jax.pmap(g, 'batch'), jax.pmap(g, axis_name='i2')", "i"),
        ("f = jax.pmap(g)", "i"),
    ],
)
def test_a_rewriting_takes_the_axis_name_of_the_maps(
    maps: str, axis: str, folder: Path, capsys: Capture
) -> None:
    write(folder, a=f"import jax\n{maps}\nw = jax.device_put_replicated(1, jax.local_devices())\n")
    scanned(capsys, "a.py", "--fix", status=DONE)
    assert f"PartitionSpec('{axis}')" in (folder / "a.py").read_text()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks_are_kept(mark: bytes, folder: Path) -> None:
    (folder / "a.py").write_bytes(mark + INDEX.replace("\n", "\r\n").encode())
    assert main(["scan", "a.py", *SIDES, "--fix"]) == DONE
    fixed = (folder / "a.py").read_bytes()
    assert fixed.startswith(mark + b"import jax\r\n")
    assert b"squeeze(0)" in fixed
    assert fixed.count(b"\n") == fixed.count(b"\r\n") == INDEX.count("\n")


def test_a_file_of_mixed_line_ends_is_not_rewritten(folder: Path, capsys: Capture) -> None:
    data = INDEX.replace("\n", "\r\n", 1).encode()
    (folder / "a.py").write_bytes(data)
    assert main(["scan", "a.py", *SIDES, "--fix"]) == DONE
    assert (folder / "a.py").read_bytes() == data
    assert "a.py: not fixed" in capsys.readouterr().err


def test_a_move_to_shard_map_rewrites_no_index(folder: Path) -> None:
    write(folder, a=INDEX)
    sides = ("--from", "new_pmap@0.8.3", "--to", "shard_map@0.12.0.1")
    assert main(["scan", "a.py", *sides, "--fix"]) == DONE
    assert (folder / "a.py").read_text() == INDEX


def test_the_hook_runs_the_command() -> None:
    file = Path(__file__).parents[3] / ".pre-commit-hooks.yaml"
    text = file.read_text()
    assert "entry: pmap-conformance scan\n" in text
    assert shutil.which("pmap-conformance") is None or 'args: ["."]' in text


@pytest.mark.long
@pytest.mark.parametrize("to_all", [False, True])
def test_sigterm_ends_a_scan_and_its_processes_at_once(to_all: bool, folder: Path) -> None:
    slow = CLEAN.replace("jit", "pmap") + "".join(
        f"def f{at}(x):\n    return f(x) + 1, [y for y in f(x)]\n" for at in range(400)
    )
    write(folder, **{f"m{at}": slow for at in range(200)})
    mark = new_mark()
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.commandline", "scan", ".", *SIDES, "--jobs", "2"],
        env={**outside_pytest(), MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert before_its_end(process, lambda: len(pids(mark)) == 3)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGTERM)
        assert gone(mark, TERMINATED_S)
        assert process.wait() == EXIT_TERMINATED
    finally:
        end(mark)
        process.communicate()
