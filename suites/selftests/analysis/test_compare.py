"""`reports compare`: what became worse, better or other between two runs, and by which cause."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from records import Record, cause, cell, claim, clause, deviation, target, unavailable, write

from harness.commandline.main import main
from reports.analysis.comparing.changes import CompareError, Comparison, Kind, compare, masked
from reports.render.text.changes import as_json, as_text
from reports.store.results import load

HEAD = [
    target(),
    claim("migrate-pmap.errors"),
    cause("a-cause"),
    clause("errors.a"),
    clause("errors.b"),
]


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    """Compare the cells of two runs, on jax 0.9.0 unless other heads are given."""

    def run(
        old: list[Record], new: list[Record], *, heads: Any = (HEAD, HEAD), **options: Any
    ) -> Comparison:
        paths = [
            write(tmp_path / f"{number}.jsonl", [*head, *records])
            for number, (head, records) in enumerate(zip(heads, (old, new), strict=True))
        ]
        return compare(load(paths[:1]), load(paths[1:]), **options)

    return run


def excused(id: str, slug: str = "a-cause", **other: Any) -> Record:
    return cell(id, "known deviation", deviation=deviation(cause=slug), **other)


def test_a_night_is_compared_with_the_last_one_beside_a_release(compared: Any) -> None:
    nights = ("0.12.1.dev20261121", "0.12.1.dev20261122")
    heads = [[*HEAD, target(jax=night)] for night in nights]
    old, new = (
        [cell("errors.a"), cell("errors.a", verdict, target=f"jax=={night}")]
        for night, verdict in zip(nights, ("conforms", "deviates"), strict=True)
    )
    found = compared(old, new, heads=heads)
    assert found.cells(Kind.REGRESSION) == 1
    assert [tuple(label.split()[-1] for label in pair) for pair in found.pairs] == [
        ("0.9.0", "0.9.0"),
        nights,
    ]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("conforms", "deviates", Kind.REGRESSION),
        ("conforms", "known deviation", Kind.REGRESSION),
        ("conforms", "flaky", Kind.REGRESSION),
        ("known deviation", "crashed", Kind.REGRESSION),
        ("deviates", "hung", Kind.REGRESSION),
        ("deviates", "conforms", Kind.REPAIR),
        ("crashed", "known deviation", Kind.REPAIR),
        ("crashed", "hung", Kind.OTHER),
        ("conforms", "removed", Kind.OTHER),
        ("not applicable", "deviates", Kind.OTHER),
    ],
)
def test_a_verdict_becomes_worse_better_or_other(
    compared: Any, old: str, new: str, kind: Kind
) -> None:
    found = compared([cell("errors.a", old)], [cell("errors.a", new)])
    assert [group.kind for group in found.groups] == [kind]


@pytest.mark.parametrize("verdict", ["conforms", "deviates", "known deviation", "removed"])
def test_what_is_as_it_was_is_no_change(compared: Any, verdict: str) -> None:
    old, new = (cell("errors.a", verdict, reason=f"saw [{n}. 2.] at 0x{n}f") for n in (1, 2))
    found = compared([old], [new])
    assert (found.compared, found.groups) == (1, ())


def test_a_deviation_in_another_way_is_another_change(compared: Any) -> None:
    one, other = (cell("errors.a", "deviates", reason=f"raised {what}") for what in "AB")
    assert [g.kind for g in compared([one], [other]).groups] == [Kind.OTHER]
    by_cause = compared([excused("errors.a")], [excused("errors.a", "b-cause")])
    assert [(g.kind, g.cause) for g in by_cause.groups] == [(Kind.OTHER, "b-cause")]


def test_a_run_whose_entries_named_no_cause_is_known_by_what_was_seen(compared: Any) -> None:
    found = compared([excused("errors.a", "")], [excused("errors.a")])
    assert found.groups == ()


def test_changes_of_one_cause_are_one_group(compared: Any) -> None:
    old = [cell("errors.a"), cell("errors.b"), cell("errors.b", topology="2x2")]
    new = [excused("errors.a"), excused("errors.b"), cell("errors.b", "deviates", topology="2x2")]
    by_cause, by_claim = compared(old, new).groups
    assert (by_cause.cause, by_cause.title) == ("a-cause", "Title of a-cause")
    assert by_cause.clauses == ("errors.a", "errors.b")
    assert (by_claim.cause, by_claim.claim) == ("", "migrate-pmap.errors")
    assert by_claim.title == cell("errors.b", "deviates")["reason"]


def test_a_repair_is_told_by_the_cause_that_it_had(compared: Any) -> None:
    (group,) = compared([excused("errors.a")], [cell("errors.a")]).groups
    assert (group.kind, group.cause) == (Kind.REPAIR, "a-cause")


def test_new_and_vanished_cells_are_counted(compared: Any) -> None:
    old = [cell("errors.a"), cell("errors.b", topology="1x8"), cell("errors.b", topology="2x2")]
    new = [cell("errors.a"), cell("errors.b"), cell("errors.b", "not run", topology="2x2")]
    found = compared(old, new)
    assert (found.compared, found.new, found.vanished, found.groups) == (1, 1, 2, ())


def test_targets_are_matched_by_their_version(compared: Any) -> None:
    other = target(target="current")
    new = cell("errors.a", "deviates", target="current")
    found = compared([cell("errors.a")], [new], heads=(HEAD, [other, *HEAD[1:]]))
    assert found.pairs == (("jax 0.9.0", "jax 0.9.0"),)
    assert found.cells(Kind.REGRESSION) == 1


def test_one_target_on_each_side_is_a_pair_whatever_its_version(compared: Any) -> None:
    new = cell("errors.a", "deviates", target="jax==0.10.0")
    found = compared([cell("errors.a")], [new], heads=(HEAD, [target("0.10.0"), *HEAD[1:]]))
    assert found.pairs == (("jax 0.9.0", "jax 0.10.0"),)
    assert found.cells(Kind.REGRESSION) == 1


def test_what_only_one_run_has_is_told(compared: Any) -> None:
    both = [target("0.10.0"), *HEAD]
    found = compared(
        [cell("errors.a")],
        [cell("errors.a"), cell("errors.a", target="jax==0.10.0")],
        heads=(HEAD, both),
    )
    (note,) = found.notes
    assert {"0.10.0", "NEW"} < set(note.split())
    assert (found.compared, found.new) == (1, 1)


def test_an_expectation_that_changed_is_told(compared: Any) -> None:
    heads = (HEAD, [*HEAD[:3], clause("errors.a", expected={"new_pmap": "other"}), HEAD[4]])
    found = compared([cell("errors.a")], [cell("errors.a")], heads=heads)
    (note,) = found.notes
    assert note.startswith("1 ")
    assert note.endswith(": errors.a")


def test_two_versions_of_one_run_are_compared(tmp_path: Path) -> None:
    cells = [cell("errors.a"), cell("errors.a", "deviates", target="jax==0.10.0")]
    results = load([write(tmp_path / "a", [target("0.10.0"), *HEAD, *cells])])
    assert compare(results, results, "0.9.0", "0.10.0").cells(Kind.REGRESSION) == 1
    assert compare(results, results, "jax==0.10.0", "0.9.0").cells(Kind.REPAIR) == 1
    with pytest.raises(CompareError, match=r"^--to 0\.7\.2: .*0\.10\.0"):
        compare(results, results, "0.9.0", "0.7.2")


def test_runs_without_a_common_jax_or_cell_are_refused(compared: Any) -> None:
    with pytest.raises(CompareError, match="no cell"):
        compared([cell("errors.a")], [cell("errors.b")])
    heads = ([target("0.8.0"), *HEAD], [target("0.10.0"), target("0.11.0"), *HEAD[1:]])
    with pytest.raises(CompareError, match=r"no JAX .*--from .*--to"):
        compared([], [], heads=heads)


def test_a_target_that_was_not_to_be_had_is_none(compared: Any) -> None:
    heads = ([*HEAD, unavailable("jax==9", "no Python")], HEAD)
    assert compared([cell("errors.a")], [cell("errors.a")], heads=heads).notes == ()


def test_what_differs_each_time_is_masked() -> None:
    one = masked("returned float32[4, 2] [[1., 2.], ..., [3. 4.]] at 0x7f in 0.25 s")
    other = masked("returned float32[4, 2] [[9., 2.], ..., [7. 4.]]  at 0x8e in 0.5 s")
    assert one == other
    assert masked("raised A") != masked("raised B")


def test_a_comparison_is_told_with_regressions_first(compared: Any) -> None:
    old = [excused("errors.b"), cell("errors.a")]
    new = [cell("errors.b"), cell("errors.a", "deviates", reason="wrong\x1b[0m")]
    lines = as_text(compared(old, new)).splitlines()
    assert lines[0] == "jax 0.9.0"
    assert [line.split(":")[0] for line in lines if line and line[0] != " "] == [
        *("jax 0.9.0", "regressions", "repairs", "2 cells in both"),
    ]
    worse, better = lines.index(lines[2]), lines.index(lines[7])
    assert [re.findall(r"\d+", lines[at]) for at in (worse, better)] == [["1", "1"]] * 2
    assert lines[worse + 2].split(",")[0].strip() == "1 conforms → deviates"
    assert {"errors.a", r"wrong\x1b[0m"} < set(lines[worse + 3].split())
    assert lines[better + 1] == "  a-cause: Title of a-cause"
    assert re.findall(r"\d+", lines[-1]) == ["2", "1", "1", "0", "0", "0"]


def test_a_comparison_for_programs_lists_every_cell(compared: Any) -> None:
    found = as_json(compared([cell("errors.a")], [cell("errors.a", "crashed")]))
    assert (found["regressions"], found["repairs"], found["other"]) == (1, 0, 0)
    assert found["groups"][0]["cells"] == [
        {
            "clause": "errors.a",
            "implementation": "new_pmap",
            "jax": "0.9.0",
            "platform": "cpu",
            "topology": "4x2",
            "old": {part: cell("errors.a")[part] for part in ("verdict", "reason")},
            "new": {part: cell("errors.a", "crashed")[part] for part in ("verdict", "reason")},
        }
    ]


@pytest.mark.parametrize(("verdict", "status"), [("deviates", 1), ("conforms", 0)])
def test_the_exit_status_says_whether_anything_became_worse(
    tmp_path: Path, capsys: Any, verdict: str, status: int
) -> None:
    old = write(tmp_path / "old", [*HEAD, cell("errors.a")])
    new = write(tmp_path / "new", [*HEAD, cell("errors.a", verdict)])
    assert main(["results", "compare", str(old), str(new), "--format", "json"]) == status
    assert json.loads(capsys.readouterr().out)["regressions"] == status


def test_the_files_of_a_run_may_lie_in_a_folder(tmp_path: Path, capsys: Any) -> None:
    old = write(tmp_path / "old", [*HEAD, cell("errors.a"), cell("errors.b")])
    (tmp_path / "parts").mkdir()
    for id in ("errors.a", "errors.b"):
        write(tmp_path / "parts" / f"{id}.jsonl", [*HEAD, cell(id)])
    files = (str(old), str(tmp_path / "parts"))
    assert main(["results", "compare", *files, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["compared"] == 2


def test_a_side_may_be_one_implementation(tmp_path: Path, capsys: Any) -> None:
    some = [cell("errors.a", implementation=name) for name in ("new_pmap", "shard_map")]
    file = str(write(tmp_path / "r", [*HEAD, *some]))
    for name, count in (("all", 2), ("new_pmap", 1), ("shard_map", 1)):
        sides = ("--from", f"{name}@0.9.0", "--to", f"{name}@0.9.0")
        assert main(["results", "compare", file, *sides, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["compared"] == count


def test_unusable_input_is_2_and_a_line(tmp_path: Path, capsys: Any) -> None:
    old = write(tmp_path / "old", [*HEAD, cell("errors.a")])
    for args in ([str(old)], [str(old), str(tmp_path / "none")], [str(old), "--from", "all@0.9.0"]):
        assert main(["results", "compare", *args]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("pmap-conformance: ")
        assert said.err.count("\n") == 1
