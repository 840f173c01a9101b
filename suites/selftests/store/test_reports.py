"""`reports`: the format, the merge, the counts, and a site that shows all and runs nothing."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from processes import HANGS_S
from records import Record, cause, cell, claim, clause, target, unavailable, write
from sample_results import VERDICT_CELLS, sample
from site_pages import Tags

import reports
from conformance.model.records import Cause
from conformance.model.schema import schema
from conformance.model.verdicts import Verdict
from conformance.store.errors import ResultsError
from harness.commandline.main import main
from reports.render.site.build import render
from reports.render.text.summary import as_json, as_text
from reports.store.order import topology_order, version_order
from reports.store.results import Results, load

FOLDER = Path(reports.__file__).parent
SCHEMA = schema()
HEAD = [target(), claim("migrate-pmap.errors"), clause("errors.a")]


@pytest.fixture
def load_records(tmp_path: Path) -> Any:
    """Write each list of records to a file of its own, and load them all."""

    def run(*files: list[Record]) -> Results:
        paths = [write(tmp_path / f"{i}.jsonl", records) for i, records in enumerate(files)]
        return load(paths)

    return run


def error_of(path: Path) -> str:
    with pytest.raises(ResultsError) as caught:
        whole(path)
    return str(caught.value)


def whole(path: Path) -> list[Any]:
    """All that is in a file: findings and observations are read when they are looked at."""
    runs = [run for outcome in load([path]).outcomes.values() for run in outcome.runs]
    return [one for run in runs for one in (*run.cell.findings, *run.cell.observations)]


def only_outcome(results: Results) -> Any:
    (outcome,) = results.outcomes.values()
    return outcome


# The format

NEVER_RECORDED = {Verdict.UNKNOWN, Verdict.LEFT_OUT}


@cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("record", sample(), ids=lambda r: r.get("clause") or r["kind"])
def test_sample_records_fit_the_schema(record: Record) -> None:
    validator().validate(record)


def test_the_sample_has_every_verdict() -> None:
    assert {Verdict(v) for v in VERDICT_CELLS} == set(Verdict) - NEVER_RECORDED


@pytest.mark.parametrize(
    "bad",
    [
        cell("errors.a") | {"verdict": 3},
        cell("errors.a") | {"colour": "green"},
        {k: v for k, v in cell("errors.a").items() if k != "reason"},
        cell("errors.a", fresh="no"),
        cell("errors.a", findings=[{"step": "x"}]),
        cell("errors.a", observations=["seen"]),
        target() | {"schema": "1"},
        target(jax=None, target="current"),
        clause("errors.a", expected={"new_pmap": 1}),
        clause("errors.a", line=True),
        cause("a-cause") | {"note": "x"},
        cause("a-cause", tags="jax.pmap"),
        {key: value for key, value in cause("a-cause").items() if key != "program"},
        {"kind": "note"},
        {"no": "kind"},
        [],
    ],
)
def test_schema_and_loader_refuse_the_same(bad: Any, tmp_path: Path) -> None:
    assert not validator().is_valid(bad)
    path = write(tmp_path / "bad.jsonl", [*HEAD, bad])
    assert f"{path}:4: " in error_of(path)


def test_causes_are_read(load_records: Any) -> None:
    one = cause("a-cause")
    results = load_records([*HEAD, one], [*HEAD, cause("b"), cause("a-cause", title="Later")])
    assert set(results.causes) == {"a-cause", "b"}
    values = {key: value for key, value in one.items() if key != "kind"}
    assert load_records([*HEAD, one]).causes["a-cause"] == msgspec.convert(values, Cause)


def test_the_schema_has_the_words_of_verdicts_that_are_recorded() -> None:
    words = [v.value for v in Verdict if v not in NEVER_RECORDED]
    assert SCHEMA["$defs"]["verdict"]["enum"] == words


def test_reports_stand_alone() -> None:
    """But for the records, the pairs of patterns, and what all command lines have in common."""
    code = (
        "import sys, reports.analysis.policies, reports.analysis.answers;"
        "import reports.render.site.build; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('harness', 'conformance', 'jax', 'numpy', 'jsonschema') "
        "and not f'{m}.'.startswith(("
        "'conformance.commandline.', 'conformance.model.', 'conformance.store.')) "
        "and m not in ('conformance', 'conformance.patterns')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
    )
    assert done.stdout.strip() == "[]"


# Loading


def test_a_torn_last_line_is_dropped_and_mentioned(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [*HEAD, cell("errors.a")])
    whole = path.read_bytes()
    path.write_bytes(whole + '{"kind": "cell", "clause": "é'.encode()[:-1])
    results = load([path])
    (note,) = results.notes
    assert note.startswith("r.jsonl: line 5 ")
    assert only_outcome(results).verdict is Verdict.CONFORMS


def test_a_whole_last_line_counts_without_its_newline(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [*HEAD, cell("errors.a")])
    path.write_bytes(path.read_bytes().rstrip())
    results = load([path])
    assert results.notes == ()
    assert only_outcome(results).verdict is Verdict.CONFORMS


@pytest.mark.parametrize("line", ['{"kind": "cel', "", "nonsense", '{"a": ' + "9" * 5000 + "}"])
def test_any_other_malformed_line_is_an_error(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", HEAD)
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{line}\n{text}", encoding="utf-8")
    assert error_of(path).startswith(f"{path}:1: ")
    path.write_text(f"{text}{line}\n", encoding="utf-8")
    assert error_of(path).startswith(f"{path}:4: ")


@pytest.mark.parametrize(
    ("records", "line", "words"),
    [
        ([target() | {"schema": 2, "future": 1}], 1, "schema 2 is newer"),
        ([*HEAD, cell("errors.b")], 4, "'errors.b' has no clause record"),
        ([*HEAD, cell("errors.a", target="current")], 4, "'current' has no target record"),
        ([cell("errors.a"), *HEAD], 1, "no target record before it"),
        (
            [*HEAD, cell("errors.a") | {"verdict": 3}],
            4,
            "got `int` - at `$.verdict`",
        ),
        ([*HEAD, cell("errors.a", seconds=True)], 4, "got `bool` - at `$.seconds`"),
        (
            [*HEAD, cell("errors.a", findings=[{}])],
            4,
            "missing required field `step`",
        ),
        (
            [*HEAD, unavailable("jax==9", "gone"), cell("errors.a", target="jax==9")],
            5,
            "'jax==9' is unavailable",
        ),
    ],
)
def test_unusable_records_are_named(
    records: list[Record], line: int, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "r.jsonl", records)
    message = error_of(path)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message


def test_headers_of_one_file_do_not_serve_another(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", HEAD)
    second = write(tmp_path / "b.jsonl", [cell("errors.a")])
    with pytest.raises(ResultsError, match=r"b\.jsonl:1: "):
        load([first, second])


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    assert "No such file" in error_of(tmp_path / "none.jsonl")


# Merging


def test_the_later_of_agreeing_files_wins(load_records: Any) -> None:
    results = load_records(
        [*HEAD, cell("errors.a", reason="first")],
        [*HEAD, cell("errors.a", reason="second")],
    )
    outcome = only_outcome(results)
    assert (outcome.verdict, outcome.reason) == (Verdict.CONFORMS, "second")
    assert [run.file for run in outcome.runs] == ["1.jsonl"]


@pytest.mark.parametrize(
    ("verdicts", "differ"),
    [
        (("conforms", "deviates"), True),
        (("conforms", "conforms"), False),
        (("not run", "conforms"), False),
    ],
)
def test_verdicts_differ_only_among_records_that_ran(
    load_records: Any, verdicts: tuple[str, str], differ: bool
) -> None:
    results = load_records(*([*HEAD, cell("errors.a", verdict)] for verdict in verdicts))
    (note,) = (text for text in results.notes if "more than once" in text)
    assert ("the verdicts differ" in note) is differ


def test_of_several_records_the_newest_speaks_and_it_is_said(load_records: Any) -> None:
    old, new = (target() | {"started": f"2026-01-0{day}T00:00:00+00:00"} for day in (1, 2))
    files = [
        [new, *HEAD[1:], cell("errors.a"), cell("errors.a", topology="1x8")],
        [old, *HEAD[1:], cell("errors.a", "deviates"), cell("errors.a", topology="1x8")],
    ]
    for order in (1, -1):
        results = load_records(*files[::order])
        (one,) = (o for key, o in results.outcomes.items() if key.topology != "1x8")
        assert one.verdict is Verdict.CONFORMS
        assert [run.started for run in one.runs] == [new["started"]]
        (note,) = (text for text in results.notes if "more than once" in text)
        assert note.startswith("2 cells ")
        assert "differ in 1: errors.a new_pmap" in note


def test_a_verdict_that_nobody_knows_is_shown(load_records: Any) -> None:
    unknown = "exploded <b>"
    results = load_records([*HEAD, cell("errors.a", unknown, reason="so")])
    outcome = only_outcome(results)
    assert (outcome.verdict, outcome.reason) == (Verdict.UNKNOWN, f"{unknown}: so")
    assert unknown in results.notes[0]
    pages = render(results)
    assert unknown in Tags(pages["targets.html"]).text
    assert outcome.reason in pages["data/matrix.json.xz"]
    assert not any(unknown in text for path, text in pages.items() if path.endswith(".html"))


def test_an_implementation_that_nobody_knows_is_shown(load_records: Any) -> None:
    results = load_records([*HEAD, cell("errors.a", implementation="xmap")])
    assert results.implementations[-1] == "xmap"
    assert "xmap" in render(results)["clauses/errors.a.html"]


@pytest.mark.parametrize("compressed", [True, False])
def test_a_compressed_file_reads_the_same(compressed: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [*HEAD, cell("errors.a"), cell("errors.a", topology="1x8")])
    packed = tmp_path / "p.jsonl.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    assert load([packed]).outcomes.keys() == load([path]).outcomes.keys()
    packed.write_bytes(packed.read_bytes()[:-30] if compressed else path.read_bytes())
    assert "whole xz file" in error_of(packed)


def test_of_records_of_one_time_the_later_file_speaks(load_records: Any) -> None:
    results = load_records([*HEAD, cell("errors.a")], [*HEAD, cell("errors.a", "deviates")])
    assert only_outcome(results).verdict is Verdict.DEVIATES


@pytest.mark.parametrize("order", [1, -1])
def test_not_run_says_nothing_against_a_result(order: int, load_records: Any) -> None:
    files = [[*HEAD, cell("errors.a", "deviates")], [*HEAD, cell("errors.a", "not run")]]
    assert only_outcome(load_records(*files[::order])).verdict is Verdict.DEVIATES


def test_cells_differ_by_every_part_of_their_key(load_records: Any) -> None:
    results = load_records(
        [
            *(*HEAD, target("0.8.0"), clause("errors.b")),
            cell("errors.a"),
            cell("errors.b"),
            cell("errors.a", topology="1x8"),
            cell("errors.a", implementation="shard_map"),
            cell("errors.a", target="jax==0.8.0"),
        ]
    )
    assert len(results.outcomes) == 5
    assert {o.verdict for o in results.outcomes.values()} == {Verdict.CONFORMS}


def test_one_spec_of_two_versions_is_two_targets(load_records: Any) -> None:
    old = [target("0.9.0", target="current"), *HEAD[1:], cell("errors.a", target="current")]
    new = [
        target("0.10.0", target="current"),
        *HEAD[1:],
        cell("errors.a", "deviates", target="current"),
    ]
    results = load_records(new, old)
    assert list(results.labels.values()) == ["jax 0.9.0", "jax 0.10.0"]
    assert [o.verdict for o in results.outcomes.values()] == [Verdict.DEVIATES, Verdict.CONFORMS]
    assert len(set(results.names.values())) == 2
    assert len(as_json(results)["cells"]["by_target"]) == 2


def test_a_target_that_another_run_had_is_available(load_records: Any) -> None:
    missing = [unavailable("jax==0.9.0", "no network"), *HEAD[1:], cell("errors.a", "not run")]
    results = load_records([*HEAD, cell("errors.a")], missing)
    assert [t.unavailable for t in results.targets] == [None]
    assert only_outcome(results).verdict is Verdict.CONFORMS


def test_a_crash_before_the_target_was_known_is_kept(load_records: Any) -> None:
    before = [unavailable("jax==0.9.0", "no worker came up"), *HEAD[1:]]
    results = load_records(
        [
            *(*before, cell("errors.a", "crashed", reason="first")),
            *(target(), cell("errors.a", "crashed", reason="second")),
            cell("errors.a", "crashed", topology="1x8"),
        ],
        [*before, cell("errors.a", "crashed", reason="third")],
    )
    (known,) = results.targets
    assert known.jax == "0.9.0"
    assert [o.reason for o in results.outcomes.values()] == [
        *("third", cell("errors.a", "crashed")["reason"]),
    ]


def test_an_unavailable_target_of_two_versions_stays_unknown(load_records: Any) -> None:
    headers = [target(v, target="current") for v in ("0.9.0", "0.10.0")]
    results = load_records(headers, [unavailable("current", "gone")])
    assert [t.jax for t in results.targets] == ["0.9.0", "0.10.0", None]


def test_other_texts_or_builds_under_one_name_are_mentioned(load_records: Any) -> None:
    results = load_records(HEAD, [target(numpy="2.0.0"), clause("errors.a", source="other")])
    assert [note.split(": ", 1)[0] for note in results.notes] == ["1.jsonl", "1.jsonl"]
    assert "numpy 2.0.0" in results.notes[0]
    assert "errors.a differs" in results.notes[1]
    assert results.clauses["errors.a"].source == "other"


def test_a_clause_without_its_program_takes_no_other_ones_place(load_records: Any) -> None:
    listed = clause("errors.a", source="", title="Today's")
    with_it = clause("errors.a", title="Then")
    for files in (([with_it], [listed]), ([listed], [with_it]), ([listed, with_it],)):
        results = load_records(*([*some] for some in files))
        assert results.notes == ()
        assert results.clauses["errors.a"].title == "Then"
        assert results.clauses["errors.a"].source


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([target("0.9.0"), target("0.10.0")], ["jax 0.9.0", "jax 0.10.0"]),
        (
            [target(), target(platform="cuda")],
            ["jax 0.9.0 (cpu)", "jax 0.9.0 (cuda)"],
        ),
        (
            [target(), target(target="current", python="3.13.1")],
            ["jax 0.9.0 (Python 3.13.1)", "jax 0.9.0 (Python 3.11.7)"],
        ),
        (
            [target(), target(target="current")],
            ["jax 0.9.0 (current)", "jax 0.9.0 (jax==0.9.0)"],
        ),
        ([unavailable("jax==0.9.0", "why")], ["jax 0.9.0"]),
    ],
)
def test_labels_say_only_what_distinguishes(
    headers: list[Record], expected: list[str], load_records: Any
) -> None:
    assert list(load_records(headers).labels.values()) == expected


def test_versions_are_ordered_by_numbers() -> None:
    versions = [
        *("0.7.2", "0.9.0", "0.9.1.dev20260101", "0.9.1rc1", "0.9.1", "0.9.1.post1", "0.10.0"),
        *("0.12.0rc1", "0.12", "0.12.0.1", "none"),
    ]
    assert all(version_order(a) < version_order(b) for a, b in pairwise(versions))
    topologies = ["1x8", "2x2", "4x2", "10x1", "any"]
    assert all(topology_order(a) < topology_order(b) for a, b in pairwise(topologies))


# Counting


def test_counts_are_of_the_whole_grid(load_records: Any) -> None:
    results = load_records(sample())
    summary = as_json(results)
    counted = summary["cells"]["all"]
    # 10 clauses, 2 targets, 3 implementations, 2 topologies
    assert sum(counted.values()) == 10 * 2 * 3 * 2
    assert counted["conforms"] == 2
    assert counted["crashed"] == 2
    assert counted["not run"] == 120 - 10
    by_target = summary["cells"]["by_target"]
    assert by_target["jax==0.9.0"]["shard_map"] == {"crashed": 1, "not run": 19}
    assert by_target["jax==0.12.0.1"]["new_pmap"] == {"not run": 20}
    assert summary["claims"]["migrate-pmap.gap"] == []
    assert "errors.fix" in summary["claims"]["migrate-pmap.errors"]
    assert summary["topologies"] == ["1x8", "4x2"]
    assert summary["implementations"] == ["legacy_pmap", "new_pmap", "shard_map"]


def test_declared_topologies_bound_the_grid(load_records: Any) -> None:
    one = clause("errors.one", topologies=["1x8"])
    results = load_records([*HEAD, one, cell("errors.a", topology="4x2")])
    assert results.grid == {"errors.a": ("1x8", "4x2"), "errors.one": ("1x8",)}
    assert sum(as_json(results)["cells"]["all"].values()) == 3 * 3


def test_clauses_without_any_cell_are_not_run(load_records: Any) -> None:
    assert as_json(load_records(HEAD))["cells"]["all"] == {"not run": 3}


def test_the_table_shows_what_occurs_and_always_the_two(load_records: Any) -> None:
    lines = as_text(load_records([*HEAD, cell("errors.a")])).splitlines()
    assert lines[0].startswith("1 fact,")
    assert lines[2].split() == ["target", "implementation", "conforms", "deviates"]
    second = next(at for at, line in enumerate(lines) if line.startswith("3 cells")) + 2
    assert lines[second].split() == [
        *("target", "implementation", "conforms", "deviates"),
        *("not", "run"),
    ]
    assert re.split(r"\s{2,}", lines[second + 3]) == ["jax 0.9.0", "new_pmap", "1", "0", "0"]
    assert lines[-3].split() == ["total", "1", "0", "2"]
    assert re.findall(r"\d+", lines[-1]) == ["1", "1"]


def test_a_fact_counts_once_and_by_its_worst_cell(load_records: Any) -> None:
    records = [
        *HEAD,
        clause("errors.b", fact="errors.shared"),
        clause("errors.c", fact="errors.shared"),
        cell("errors.a"),
        cell("errors.b"),
        cell("errors.c", "deviates"),
        cell("errors.c", "not applicable", implementation="shard_map"),
    ]
    facts = as_json(load_records(records))["facts"]
    assert facts["all"] == {"conforms": 1, "deviates": 1}
    assert facts["clauses"] == {
        "errors.a": ["errors.a"],
        "errors.shared": ["errors.b", "errors.c"],
    }


def test_a_partial_run_is_about_what_it_ran(load_records: Any) -> None:
    records = [*HEAD, claim("b"), clause("errors.b", claim="b"), cell("errors.a")]
    clauses, claims = as_text(load_records(records)).splitlines()[-2:]
    assert re.findall(r"\d+", clauses) == ["1", "2"]
    assert re.findall(r"\d+", claims) == ["1", "2", "1"]


def test_the_table_names_what_is_missing(load_records: Any) -> None:
    lines = as_text(load_records(sample())).splitlines()
    (missing,) = (one for one in sample() if one.get("unavailable"))
    (line,) = (line for line in lines if line.startswith("unavailable: jax 0.12.0.1"))
    assert line.endswith(f": {missing['unavailable']}")
    assert re.findall(r"\d+", lines[-1])[:2] == ["1", "2"]


# The command line


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "r.jsonl", sample()))
    assert main(["results", "summary", path]) == 0
    assert "jax 0.12.0.1" in capsys.readouterr().out
    assert main(["results", "summary", "--format", "json", path]) == 0
    assert json.loads(capsys.readouterr().out)["cells"]["all"]["hung"] == 1
    assert main(["report", "site", path, "-o", str(tmp_path / "site")]) == 0
    written = list((tmp_path / "site").rglob("*.html"))
    assert capsys.readouterr().out.startswith(f"{len(written)} pages: ")
    assert (tmp_path / "site" / "index.html").is_file()


@pytest.mark.parametrize("bad", ["missing", "malformed", "output"])
def test_errors_are_one_line_and_2(
    bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "r.jsonl", HEAD)
    if bad == "missing":
        arguments = ["results", "summary", str(tmp_path / "none")]
    elif bad == "malformed":
        path.write_text("{}\n", encoding="utf-8")
        arguments = ["results", "summary", str(path)]
    else:
        arguments = ["report", "site", str(path), "-o", str(path)]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pmap-conformance: ")
    assert said.err.count("\n") == 1
