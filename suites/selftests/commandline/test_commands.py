"""The catalogue's command line: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import real
from judged import received
from processes import HANGS_S
from records import JAX, TOPOLOGY, observations

import conformance.sections
from conformance.catalogue import loading, spelling
from conformance.catalogue.claims import load_claims
from conformance.catalogue.declarations import line_of, source_text
from conformance.catalogue.loading import Catalogue
from conformance.commandline.ending import EXIT_INTERRUPTED, EXIT_NOT_READ, PROGRAM
from conformance.commands.new import new
from conformance.commands.show import show
from conformance.judging.deviations import Deviation, load_all
from conformance.judging.judge import judge
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.names import IMPLEMENTATIONS, NEW_PMAP
from harness.commandline import main as commandline
from harness.commandline.command import DONE, FAILED
from harness.commandline.main import main

ROOT = Path(conformance.sections.__file__).resolve().parents[2]
REAL = real.catalogue()
CLAIMS = load_claims()
CLAIM = "migrate-pmap.incompatible-devices"
ID = "errors.lowered.one-process-map"

Capture = pytest.CaptureFixture[str]


# `show`


def shown(one: Clause, deviations: list[Deviation] | None = None) -> dict[str, str]:
    """Return the lines that `show` prints above a clause's program, by label."""
    lines = list(show(REAL, CLAIMS, deviations or [], one.id))
    assert lines.pop(0) == one.id
    facts = lines[: lines.index("")]
    return {line[2:29].strip(): line[29:] for line in facts}


def some(holds: Any) -> Clause:
    return next(one for one in REAL.clauses.values() if holds(one))


def test_a_clause_is_shown_whole() -> None:
    one = REAL.clauses[ID]
    said = shown(one)
    claim = CLAIMS.claims[one.claim]
    found = line_of(one)
    assert found is not None
    assert said == {
        "clause": one.title,
        "statement": f"{claim.statement} ({claim.slug})",
        "source": CLAIMS.documents[claim.document].title,
        "fact": "errors.lowered.one-process",
        **{f"expected of {name}": one.expect[name].text for name in IMPLEMENTATIONS},
        "rows": "program = 'map'",
        "topologies": ", ".join(one.topologies),
        "left out": one.left_out,
        "same run as": "errors.lowered.several-processes-map",
        "file": ":".join(map(str, one.where)),
        "row": ":".join(map(str, found)),
    }


def test_a_clauses_source_has_the_heading_of_its_claim() -> None:
    one = some(lambda one: CLAIMS.claims[one.claim].heading)
    claim = CLAIMS.claims[one.claim]
    title = CLAIMS.documents[claim.document].title
    assert shown(one)["source"] == f"{title}, “{claim.heading}”"
    assert shown(one)["stands in"] == ", ".join(CLAIMS.stands_in(claim))


def test_a_clause_is_shown_as_it_is_written_and_with_what_runs_it() -> None:
    text = "\n".join(show(REAL, CLAIMS, [], ID))
    assert source_text(REAL.clauses[ID]).rstrip() in text
    assert f"run --clause {ID} " in text
    assert f"plain.run('{ID}')" in text


def test_a_remedy_names_what_it_remedies_and_the_other_way_round() -> None:
    fix = some(lambda one: one.fixes is not None)
    assert shown(fix)["remedies"] == fix.fixes
    fixed = REAL.clauses[fix.fixes or ""]
    assert fix.id in shown(fixed)["remedied by"].split(", ")
    assert "remedies" not in shown(fixed)


def test_clauses_that_judge_the_same_run_name_one_another() -> None:
    one = some(lambda one: len(REAL.runs[one.id]) > 1)
    assert {*shown(one)["same run as"].split(", "), one.id} == {*REAL.runs[one.id]}
    alone = some(lambda one: len(REAL.runs[one.id]) == 1)
    assert "same run as" not in shown(alone)


def test_what_excuses_a_clause_is_shown() -> None:
    entries = real.entries()
    about = [one for one in entries if "*" not in one.clause]
    entry = next(one for one in about if any(one.names(id) for id in REAL.clauses))
    of = next(id for id in REAL.clauses if entry.names(id))
    text = "\n".join(show(REAL, CLAIMS, entries, of))
    assert f"  deviation      {entry.where}: {', '.join(entry.implementation)}, " in text
    assert f"sees /{entry.seen}/" in text
    assert " ".join(entry.why.split()) in text
    other = next(id for id in REAL.clauses if not any(one.names(id) for one in about))
    assert "deviation  " not in "\n".join(show(REAL, CLAIMS, entries, other))


@pytest.mark.parametrize(
    ("id", "offered"),
    [
        ("errors.lowered.one-process-mpa", ID),
        ("errors.lowered.one-process", ID),
        ("lowered.one", ID),
        ("errors.lowered", "errors.lowered."),
    ],
)
def test_in_place_of_an_unknown_id_close_ones_are_offered(
    id: str, offered: str, capsys: Capture
) -> None:
    assert main(["show", id]) == FAILED
    told = capsys.readouterr()
    assert told.out == ""
    before, mark, after = told.err.partition("; did you mean ")
    assert (before.split()[-1], mark != "") == (id, True)
    ids = after.rstrip("?\n").split(", ")
    assert 1 <= len(ids) <= spelling.MOST
    assert set(ids) <= set(REAL.clauses)
    assert any(one.startswith(offered) for one in ids)


def test_where_nothing_is_close_nothing_is_offered(capsys: Capture) -> None:
    assert main(["show", "Q"]) == FAILED
    said = r"pmap-conformance: no clause is called Q; `list clauses` lists them\n"
    assert re.fullmatch(said, capsys.readouterr().err)


def test_the_command_shows_a_clause(capsys: Capture) -> None:
    assert main(["show", ID]) == DONE
    text = capsys.readouterr().out
    assert text.startswith(f"{ID}\n  clause  ")
    assert text.endswith(f"plain.run('{ID}')\n")


@pytest.mark.parametrize("section", sorted({one.section for one in REAL.clauses.values()}))
def test_a_clause_is_shown_from_its_section_as_from_the_whole_catalogue(section: str) -> None:
    ids = [one.id for one in REAL.clauses.values() if one.section == section]
    every, entries = load_all(), load_all(section)
    part = loading.with_section_of(ids[0])
    assert [*part.clauses] == ids
    assert {one.fixes for one in part.clauses.values()} - {None} <= {*ids}
    for id in ids[:: 1 + len(ids) // 8]:
        here = list(show(part, CLAIMS, entries, id))
        assert here == list(show(REAL, CLAIMS, every, id)), id


def test_whoever_has_read_enough_sees_no_error() -> None:
    """With `... claims | head`, for example, the reader ends before the first line is written."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "harness.commandline", "list", "claims"],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        timeout=HANGS_S,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (EXIT_NOT_READ, "")


def test_ctrl_c_ends_any_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commandline, "main", interrupted)
    monkeypatch.setattr(commandline.gc, "disable", lambda: None)  # it is for a process of its own
    assert commandline.run() == EXIT_INTERRUPTED
    assert re.fullmatch(r"pmap-conformance: interrupted: .+\n", capsys.readouterr().err)


# `claims`


def test_the_clauses_of_a_claim_are_listed(capsys: Capture) -> None:
    assert main(["list", "claims", CLAIM]) == DONE
    first, stands_in, *lines = capsys.readouterr().out.splitlines()
    claim = CLAIMS.claims[CLAIM]
    assert stands_in == f"  stands in {', '.join(CLAIMS.stands_in(claim))}"
    assert first.split() == [claim.ref, claim.kind, f"{CLAIM}:", *claim.statement.split()]
    assert lines == [
        f"  {one.id}: {one.title}" for one in REAL.clauses.values() if one.claim == CLAIM
    ]
    assert lines


def test_every_claim_has_its_number_of_clauses(capsys: Capture) -> None:
    assert main(["list", "claims"]) == DONE
    *lines, summary = capsys.readouterr().out.splitlines()
    (line,) = (one for one in lines if f" {CLAIM}: " in one)
    count = sum(one.claim == CLAIM for one in REAL.clauses.values())
    assert line.split()[2] == str(count)
    gaps = sum(one.split(":")[0].split()[-2] == "0" for one in lines)
    assert re.findall(r"\d+", summary) == [str(len(lines)), str(gaps)]


def test_a_claim_that_is_none_is_refused(capsys: Capture) -> None:
    assert main(["list", "claims", "migrate-pmap.no-such-claim"]) == FAILED
    assert re.search(r"migrate-pmap\.no-such-claim; .*migrate-pmap\.", capsys.readouterr().err)


# `new`


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a copy of the section `errors`, beside the empty section `empty`."""
    sections = tmp_path / "sections"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(
        Path(conformance.sections.__path__[0], "errors"), sections / "errors", ignore=ignored
    )
    (sections / "empty").mkdir()
    monkeypatch.setattr(conformance.sections, "__path__", [str(sections)])
    return sections / "errors"


def written(file: Path) -> list[Clause]:
    """The clauses that a module declares, in the order in which they stand in it."""
    name = f"written_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for their annotations
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    probes = [value for value in vars(module).values() if getattr(value, "__module__", "") == name]
    return [one for probe in probes for one in getattr(probe, "clauses", ())]


def texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in folder.parent.rglob("*.py")}


def changed(before: dict[str, str], folder: Path) -> set[str]:
    after = texts(folder)
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize("module", ["outputs", "devices", "arguments", "not_there_yet"])
def test_a_skeleton_can_be_loaded_and_declares_the_clause(copy: Path, module: str) -> None:
    before = texts(copy)
    file = new(REAL, CLAIMS, "errors.some-thing.new", CLAIM, module)
    assert file == copy / f"{module}.py"
    assert changed(before, copy) == {file.name}
    one = written(file)[-1]
    assert (one.id, one.claim) == ("errors.some-thing.new", CLAIM)
    assert one.title.startswith("TO BE WRITTEN: ")
    assert one.probe.__name__ == "some_thing_new"
    assert set(one.expect) == set(IMPLEMENTATIONS)
    assert file.read_text(encoding="utf-8").endswith("impl.given(cluster.rows(2)))\n")


def test_what_stood_in_the_module_still_stands_there(copy: Path) -> None:
    file = copy / "devices.py"
    ids = [one.id for one in written(file)]
    before = statements(file)
    new(REAL, CLAIMS, "errors.some-thing", CLAIM, "devices")
    assert [one.id for one in written(file)] == [*ids, "errors.some-thing"]
    assert before - statements(file) == set()


def statements(file: Path) -> set[str]:
    """The statements of a module; of an import from a module, one for each name."""
    found: set[str] = set()
    for one in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.ImportFrom):
            found |= {f"{one.module} {ast.dump(name)}" for name in one.names}
        else:
            found.add(ast.dump(one))
    return found


def test_without_a_module_it_stands_with_the_clauses_that_are_called_alike(copy: Path) -> None:
    beside = some(lambda one: one.where[0].endswith("errors/outputs.py"))
    file = new(REAL, CLAIMS, f"{beside.id}-once-more", CLAIM, None)
    assert file == copy / "outputs.py"
    assert written(file)[-1].id == f"{beside.id}-once-more"


def test_an_id_that_continues_another_one_goes_to_its_module(copy: Path) -> None:
    id = "errors.incompatible-devices.under-jit-fix-numpy.more"
    assert new(REAL, CLAIMS, id, CLAIM, None) == copy / "wrapped.py"


@pytest.mark.parametrize(
    ("claim", "module"),
    [("pmap-silence.state-after-an-error", "state"), ("migrate-pmap.core-halted", "barriers")],
)
def test_an_id_like_no_other_goes_to_the_clauses_of_its_claim(
    copy: Path, claim: str, module: str
) -> None:
    assert new(REAL, CLAIMS, "errors.a-new-one", claim, None) == copy / f"{module}.py"


def test_words_of_the_id_weigh_more_than_the_claim(copy: Path) -> None:
    claim = "migrate-pmap.core-halted"
    assert new(REAL, CLAIMS, "errors.lowered.more", claim, None) == copy / "lowered.py"


def test_an_id_may_be_a_word_of_python(copy: Path) -> None:
    one = written(new(REAL, CLAIMS, "errors.import", CLAIM, "not_there_yet"))[-1]
    assert (one.id, one.probe.__name__) == ("errors.import", "import_")


def test_one_skeleton_may_follow_another(copy: Path) -> None:
    for id in ("errors.first", "errors.second"):
        file = new(REAL, CLAIMS, id, CLAIM, "not_there_yet")
    assert [one.id for one in written(file)] == ["errors.first", "errors.second"]
    lines = file.read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if line.startswith("from conformance.")]
    assert imports
    assert len(imports) == len(set(imports))


@pytest.mark.parametrize("module", ["outputs", "lowered", "indexing", "barriers", "not_there_yet"])
def test_a_skeleton_is_as_lint_wants_it(copy: Path, module: str) -> None:
    file = new(REAL, CLAIMS, "errors.some-thing.new", CLAIM, module)
    for command in (["check"], ["format", "--check"]):
        linted = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", ROOT / "pyproject.toml", file],
            capture_output=True,
            text=True,
            check=False,
        )
        assert linted.returncode == 0, linted.stdout + linted.stderr


def test_a_skeleton_is_red_until_it_is_written(copy: Path) -> None:
    one = written(new(REAL, CLAIMS, "errors.some-thing.new", CLAIM, "outputs"))[-1]
    seen = [received(record) for record in observations()]
    assert judge(one, NEW_PMAP, TOPOLOGY, JAX, seen, None).verdict == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("id", "claim", "module", "said"),
    [
        (ID, CLAIM, None, rf"there is a clause {ID} already: conformance/.*/lowered\.py:\d+"),
        ("errors.new", "migrate-pmap.no-such", None, "no claim is called migrate-pmap.no-such"),
        ("errors.new", CLAIM.split(".")[1], None, f"did you mean {CLAIM}"),
        ("error.new", CLAIM, None, "first word must be a section, one of .*, errors, "),
        ("errors", CLAIM, None, "errors: an id is dotted lower-case words"),
        ("empty.new", CLAIM, None, "empty has no clauses yet: name a module with --module"),
    ],
    ids=["taken", "no claim", "half a claim", "no section", "no words", "no module"],
)
def test_a_clause_that_has_no_place_is_refused(
    copy: Path, id: str, claim: str, module: str | None, said: str
) -> None:
    before = texts(copy)
    with pytest.raises(ValueError, match=said):
        new(REAL, CLAIMS, id, claim, module)
    assert changed(before, copy) == set()


@pytest.mark.parametrize(
    ("id", "module"),
    [
        ("errors.new", "lowered"),  # imports another name from the module of `clause`
        ("errors.new", "indexing"),
        ("errors.2x", "not_there_yet"),  # no name of a function
    ],
)
def test_a_skeleton_can_be_loaded_wherever_it_stands(copy: Path, id: str, module: str) -> None:
    assert written(new(REAL, CLAIMS, id, CLAIM, module))[-1].id == id


@pytest.mark.parametrize("id", ["errors.Some-Thing", "errors.a b", "errors.a..b", "errors.-"])
def test_an_id_that_no_clause_may_have_is_refused(copy: Path, id: str) -> None:
    with pytest.raises(ValueError, match="dotted lower-case"):
        new(REAL, CLAIMS, id, CLAIM, "outputs")


def test_a_section_without_clauses_takes_a_module_that_is_named(copy: Path) -> None:
    file = new(Catalogue({}), CLAIMS, "empty.first", CLAIM, "things")
    assert file == copy.parent / "empty" / "things.py"
    assert [one.id for one in written(file)] == ["empty.first"]


def test_the_command_says_where_it_wrote_and_what_to_run(
    copy: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["new", "errors.some-thing", "--claim", CLAIM, "--module", "outputs"]
    monkeypatch.setattr(loading, "load", lambda: REAL)
    assert main(arguments) == DONE
    first, _, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{copy / 'outputs.py'}: `Received incompatible devices`, ")
    assert first.endswith("program.")
    assert last.split() == [
        "pmap-conformance",
        "run",
        "--clause",
        "errors.some-thing",
        "--target",
        "current",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", ID, "--claim", CLAIM], f"there is a clause {ID} already: "),
        (
            ["new", "errors.new", "--claim", "no-such"],
            "no claim is called no-such",
        ),
        (
            ["new", "no_section.new", "--claim", CLAIM],
            "no_section.new: its first word",
        ),
    ],
)
def test_the_command_tells_why_it_wrote_nothing(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    assert main(arguments) == FAILED
    told = capsys.readouterr()
    assert (told.out, told.err.startswith(f"{PROGRAM}: {said}")) == ("", True)
