"""The page of measured memory: made from the notes of a results file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import Record, cell, claim, clause, observation, sample_step, target, write
from sample_results import MARKUP
from site_pages import text_in, tree

from reports.render.site.build import render
from reports.render.site.memory import Figure, memory
from reports.store.results import load

CLAUSES = [clause("donation.peak.a"), clause("donation.reused.a")]
HEAD = [target(), target("0.10.2"), claim("migrate-pmap.errors"), *CLAUSES]


def noted(id: str, *notes: Any, **other: Any) -> Record:
    """A cell each of whose processes noted one thing."""
    seen = [
        observation(sample_step(extra={"memory": note}), process=process)
        for process, note in enumerate(notes)
    ]
    return cell(id, observations=seen, **other)


def multiple(value: float, what: str = "a state") -> Record:
    return {"what": what, "multiple": value}


def reused(taken: int, what: str = "a state") -> Record:
    return {"what": what, "reused": [taken, 8]}


def page_of(tmp_path: Path, *cells: Record) -> Any:
    return memory(load([write(tmp_path / "r.jsonl", [*HEAD, *cells])]))


def figures(tmp_path: Path, *cells: Record) -> list[Figure | None]:
    """Those of jax 0.9.0 in the only table, by implementation."""
    (table,) = page_of(tmp_path, *cells).tables
    row = next(row for row in table.rows if row.label == "jax 0.9.0")
    return list(row.figures)


def test_the_multiple_of_the_process_that_needed_most_is_shown(tmp_path: Path) -> None:
    _, new, _ = figures(tmp_path, noted("donation.peak.a", multiple(1.01), multiple(1.99)))
    assert new is not None
    assert new.multiple == "1.99"
    assert new.href == "clauses/donation.peak.a.html"


@pytest.mark.parametrize(
    ("shares", "said"),
    [((8, 8), "reused"), ((0, 0), "not reused"), ((8, 4), "partly reused"), ((), "")],
)
def test_what_became_of_the_buffers_stands_beside_it(
    tmp_path: Path, shares: tuple[int, ...], said: str
) -> None:
    looked = [noted("donation.reused.a", *map(reused, shares))] if shares else []
    _, new, _ = figures(tmp_path, noted("donation.peak.a", multiple(1)), *looked)
    assert new is not None
    assert new.reused == said


def test_a_kind_that_was_not_measured_has_no_table(tmp_path: Path) -> None:
    assert not page_of(tmp_path, noted("donation.reused.a", reused(8))).tables


def test_a_cell_without_a_figure_shows_its_verdict(tmp_path: Path) -> None:
    legacy, new, shard_map = figures(
        tmp_path,
        noted("donation.peak.a", multiple(1)),
        cell("donation.peak.a", "removed", implementation="legacy_pmap"),
        cell("donation.peak.a", "crashed", implementation="shard_map"),
    )
    assert legacy is not None
    assert legacy.missing == "gone"
    assert new is not None
    assert shard_map is not None
    assert (shard_map.multiple, shard_map.verdict.value) == ("", "crashed")


def test_a_removed_implementation_is_gone_where_few_tests_ran_too(tmp_path: Path) -> None:
    """A test that the core tier leaves out says nothing of what its JAX has."""
    legacy, _, _ = figures(
        tmp_path,
        noted("donation.peak.a", multiple(1)),
        cell("donation.reused.a", "removed", implementation="legacy_pmap"),
    )
    assert legacy is not None
    assert legacy.missing == "gone"


def test_a_target_that_measured_nothing_is_not_run_never_blank(tmp_path: Path) -> None:
    (table,) = page_of(tmp_path, noted("donation.peak.a", multiple(1))).tables
    other = next(row for row in table.rows if row.label == "jax 0.10.2")
    assert [f.verdict.value for f in other.figures if f] == ["not run"] * 3


def test_topologies_and_kinds_have_tables_of_their_own(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        noted("donation.peak.a", multiple(1)),
        noted("donation.peak.a", multiple(2), topology="1x8"),
        noted("donation.reused.a", multiple(3, "a batch")),
    )
    assert [(t.what, t.topology) for t in page.tables] == [
        ("a state", "4x2"),
        ("a state", "1x8"),
        ("a batch", "4x2"),
    ]


@pytest.mark.parametrize(
    "note", [1, [], {"what": 1}, {"what": "x", "multiple": "2"}, {"what": "x"}]
)
def test_notes_of_another_shape_are_passed_over(tmp_path: Path, note: Any) -> None:
    assert not page_of(tmp_path, noted("donation.peak.a", note)).tables


def test_the_page_escapes_what_it_shows(tmp_path: Path) -> None:
    cells = [noted("donation.peak.a", multiple(2.5, MARKUP))]
    site = render(load([write(tmp_path / "r.jsonl", [*HEAD, *cells])]))
    assert "2.50" in site["cost.html"]
    page = tree(site["cost.html"])
    assert all(one.get("src") for one in page.iter("script"))
    assert MARKUP in text_in(page)


def test_without_a_measurement_there_is_no_page(tmp_path: Path) -> None:
    site = render(load([write(tmp_path / "r.jsonl", [*HEAD, cell("donation.peak.a")])]))
    assert "cost.html" not in site


@pytest.mark.parametrize(
    ("cell_of_it", "said"),
    [
        (noted("donation.peak.a", None), "ran, without this figure"),
        (cell("donation.peak.a"), "raises ValueError, second call"),
        (cell("donation.peak.a", "crashed", observations=[]), "crashes"),
    ],
)
def test_without_a_figure_it_is_said_what_happened(
    tmp_path: Path, cell_of_it: Record, said: str
) -> None:
    legacy = noted("donation.peak.a", multiple(1.0), implementation="legacy_pmap")
    records = [*HEAD, legacy, cell_of_it]
    results = load([write(tmp_path / "r.jsonl", records)])
    (table,) = memory(results).tables
    row = next(row for row in table.rows if row.label == "jax 0.9.0")
    assert row.figures[1] is not None
    assert row.figures[1].missing == said
    page = render(results)["cost.html"]
    assert said in {text_in(one) for one in tree(page).iter("td")}
    assert "no figure" not in page


def test_what_maps_nothing_has_no_column(tmp_path: Path) -> None:
    found = page_of(
        tmp_path,
        noted("donation.peak.a", multiple(1.0)),
        clause("drop-in.name", expected={"jax": "returns"}),
        cell("drop-in.name", implementation="jax"),
    )
    assert [name for name, _ in found.implementations] == ["legacy_pmap", "new_pmap", "shard_map"]
    assert all(len(row.figures) == 3 for table in found.tables for row in table.rows)


def test_targets_of_equal_figures_are_one_row_of_spans(tmp_path: Path) -> None:
    at = {"target": "jax==0.10.2"}
    same = [noted("donation.peak.a", multiple(2)), noted("donation.peak.a", multiple(2.01), **at)]
    other = [noted("donation.peak.a", multiple(2)), noted("donation.peak.a", multiple(1), **at)]

    (table,) = page_of(tmp_path, *same).tables
    assert [row.label for row in table.spans] == ["jax 0.9.0 to 0.10.2"]
    (table,) = page_of(tmp_path, *other).tables
    assert [row.label for row in table.spans] == ["jax 0.9.0", "jax 0.10.2"]
