"""`reports findings`: what no document says, a line each, and the claims without a clause."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from compared_cells import ENTRY, OTHER, array, run
from markdown_it import MarkdownIt
from records import Record, cause, cell, claim, clause, deviation, target, write
from sample_results import HOSTILE

from harness.commandline.main import main
from reports.analysis.comparing.agreement import agree
from reports.analysis.comparing.entries import load_entries
from reports.render.text.findings import Findings, as_json, as_markdown, findings, in_markdown
from reports.store.results import load
from reports.store.shown import spans

HEAD = [
    target("0.8.0"),
    target("0.9.0"),
    target("0.10.0"),
    claim("migrate-pmap.errors"),
    claim("migrate-pmap.gap", ref="C9", statement="A [gap]."),
    cause("a-cause", cause_kind="documentation"),
    clause("errors.a", expected={}),
    clause("errors.b", expected={}, source="x"),
]


def excused(id: str, jax: str, **other: Any) -> Record:
    return cell(
        id,
        "known deviation",
        target=f"jax=={jax}",
        deviation=deviation(cause=other.pop("cause", "a-cause")),
        **other,
    )


@pytest.fixture
def found(tmp_path: Path) -> Any:
    """The findings of these cells, with these entries."""

    def findings_of(*cells: Record, entries: str = "", compared: bool = False) -> Findings:
        results = load([write(tmp_path / "results", [*HEAD, *cells])])
        file = tmp_path / "entries.toml"
        file.write_text(entries)
        return findings(results, agree(results, load_entries(file)) if compared else None)

    return findings_of


def test_a_cause_is_one_line_with_its_versions_and_program(found: Any) -> None:
    cells = [
        excused("errors.a", "0.8.0"),
        excused("errors.a", "0.9.0"),
        excused("errors.b", "0.9.0", topology="1x8"),
        cell("errors.a", target="jax==0.10.0"),
    ]
    lines = as_markdown(found(*cells)).splitlines()
    assert lines[0] == "# Findings"
    assert "### errors" in lines
    (line,) = (line for line in lines if line.startswith("- **Title of a-cause.** `a-cause`"))
    for each in (
        "new_pmap 0.9.0 (1x8), 0.8.0 to 0.9.0 (4x2)",  # one process and several apart
        "2 tests",
        f"`{cause('a-cause')['file']}`",
    ):
        assert each in line


def test_what_conforms_or_excuses_nothing_is_no_finding(found: Any) -> None:
    assert found(cell("errors.a")).causes == ()
    assert found(excused("errors.a", "0.9.0", cause="")).causes == ()


def test_a_cause_that_the_results_do_not_carry_is_named_by_its_slug(found: Any) -> None:
    (one,) = found(excused("errors.a", "0.9.0", cause="b-cause")).causes
    assert (one.title, one.program) == ("b-cause", "")


def test_a_version_that_does_not_show_it_breaks_a_range(found: Any) -> None:
    at = [excused("errors.a", "0.8.0"), excused("errors.a", "0.10.0")]
    (one,) = found(*at, cell("errors.a")).causes
    assert one.shown[0].jax == "0.8.0, 0.10.0"
    # Another clause that was run in between says nothing of this one.
    (one,) = found(*at, cell("errors.b")).causes
    assert one.shown[0].jax == "0.8.0 to 0.10.0"


def test_another_test_of_the_issue_breaks_no_range_of_what_it_does_not_show(found: Any) -> None:
    at = [excused("errors.a", "0.8.0"), excused("errors.a", "0.10.0")]
    other = [cell("errors.b", target="jax==0.8.0"), cell("errors.b"), excused("errors.b", "0.10.0")]
    (one,) = found(*at, *other).causes
    assert one.shown[0].jax == "0.8.0 to 0.10.0"


@pytest.mark.parametrize(
    ("some", "of", "said"),
    [
        ({"0.9.0"}, {"0.9.0"}, "0.9.0"),
        ({"0.9.2", "0.10.0"}, {"0.9.2", "0.10.0", "0.8.0"}, "0.9.2 to 0.10.0"),
        ({"0.8.0", "0.10.0"}, {"0.9.0"}, "0.8.0, 0.10.0"),
        (set(), {"0.9.0"}, ""),
    ],
)
def test_versions_are_said_in_spans(some: set[str], of: set[str], said: str) -> None:
    assert spans(some, of) == said


DIFFERENT = [
    run(name, step, id=id)
    for id in ("errors.a", "errors.b")
    for name, step in (("legacy_pmap", array()), ("new_pmap", OTHER))
]


def test_a_difference_without_a_cause_has_the_smallest_clause_as_its_program(found: Any) -> None:
    known = "[[difference]]\n" + ENTRY.replace('"a"', '"*"').replace('"b"', '"*"')
    all_of_it = found(*DIFFERENT, entries=known, compared=True)
    (one,) = all_of_it.others
    assert (one.title, one.program) == ("c", "pmap-conformance show errors.b")
    assert one.clauses == ("errors.a", "errors.b")
    assert all_of_it.new == ()


def test_a_difference_with_a_cause_stands_under_it_though_its_cells_conform(found: Any) -> None:
    known = "[[difference]]\n" + ENTRY.replace('"a"', '"*"').replace('"b"', '"*"')
    all_of_it = found(*DIFFERENT, entries=known + 'cause = "a-cause"\n', compared=True)
    (one,) = all_of_it.causes
    assert (one.cause, one.clauses) == ("a-cause", ("errors.a", "errors.b"))
    assert [(shown.implementation, shown.jax) for shown in one.shown] == [("new_pmap", "0.9.0")]
    assert (all_of_it.others, all_of_it.new) == ((), ())


def test_cells_that_deviate_and_that_differ_by_a_cause_are_one_finding(found: Any) -> None:
    known = "[[difference]]\n" + ENTRY.replace('"a"', '"*"').replace('"b"', '"*"')
    entries = known + 'cause = "a-cause"\n'
    (one,) = found(*DIFFERENT, excused("errors.a", "0.8.0"), entries=entries, compared=True).causes
    assert [shown.jax for shown in one.shown] == ["0.9.0", "0.8.0"]  # one process, several
    assert one.clauses == ("errors.a", "errors.b")


def test_a_difference_that_is_new_stands_apart(found: Any) -> None:
    all_of_it = found(*DIFFERENT, compared=True)
    (new,) = all_of_it.new
    assert new.title.split()[:3:2] == ["legacy_pmap", "new_pmap,"]
    assert new.title.endswith("dtype: float32 → int32")
    assert in_markdown(new.title) in as_markdown(all_of_it)


def test_claims_without_a_clause_are_listed(found: Any) -> None:
    lines = as_markdown(found(cell("errors.a"))).splitlines()
    assert lines[-3].startswith("## ")
    assert lines[-3].endswith(": 1")
    assert lines[-2:] == ["", r"- C9 `migrate-pmap.gap`: A \[gap\]."]


def test_nothing_of_a_text_is_markup(tmp_path: Path) -> None:
    records = [*HEAD, cause("evil", title=HOSTILE), excused("errors.a", "0.9.0", cause="evil")]
    text = as_markdown(findings(load([write(tmp_path / "results", records)]), None))
    inline = [part for one in MarkdownIt().parse(text) for part in one.children or ()]
    assert "html_inline" not in {part.type for part in inline}
    assert "\x1b" not in text


def test_findings_for_programs(found: Any) -> None:
    told = as_json(found(excused("errors.a", "0.9.0")))
    assert told["causes"][0]["shown"] == [
        {"implementation": "new_pmap", "jax": "0.9.0", "topologies": ["4x2"]}
    ]
    assert [one["slug"] for one in told["gaps"]] == ["migrate-pmap.gap"]


def test_findings_are_written_to_a_file(tmp_path: Path, capsys: Any) -> None:
    results = str(write(tmp_path / "results", [*HEAD, excused("errors.a", "0.9.0")]))
    file = tmp_path / "new" / "FINDINGS.md"
    assert main(["report", "findings", results, "-o", str(file)]) == 0
    assert re.fullmatch(rf"1 .*, 1 .*: {re.escape(str(file))}\n", capsys.readouterr().out)
    assert main(["report", "findings", results]) == 0
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    assert main(["report", "findings", results, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["jax"] == ["0.8.0", "0.9.0", "0.10.0"]
    assert main(["report", "findings", results, "-o", str(tmp_path)]) == 2
