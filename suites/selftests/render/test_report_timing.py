"""Figures of the time lane: read, merged, and shown beside the clauses that they illustrate."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import cell, claim, clause, target, timing, write
from sample_results import HOSTILE, MARKUP
from site_pages import classed, text_in, tree

from conformance.store.errors import ResultsError
from reports.render.site.build import render
from reports.store.results import load

HEAD = [
    target(),
    claim("migrate-pmap.errors"),
    clause("errors.a", topologies=["4x2"]),
    clause("errors.b", topologies=["4x2"]),
    cell("errors.a"),
    cell("errors.b"),
]


def page_of(id: str, *files: Path) -> str:
    return render(load(files))[f"clauses/{id}.html"]


def test_figures_stand_in_the_cell_that_they_illustrate_and_in_no_other(tmp_path: Path) -> None:
    matrix = write(tmp_path / "matrix.jsonl", HEAD)
    figures = write(tmp_path / "timing.jsonl", [target(), timing("errors.a")])
    # of one implementation and topology
    (shown,) = map(text_in, classed(tree(page_of("errors.a", matrix, figures)), "timings"))
    assert shown.startswith("timing.index.4kib, index: 1.58 ms (1.4 ms to 2 ms")
    assert timing("errors.a")["ratios"][0]["says"] in shown
    assert classed(tree(page_of("errors.b", matrix, figures)), "timings") == []


def test_what_was_not_measured_says_why(tmp_path: Path) -> None:
    failed = timing("errors.a", seconds=None, ratios=[], rounds=0, failed="crashed: SIGSEGV")
    shown = page_of("errors.a", write(tmp_path / "all.jsonl", [*HEAD, failed]))
    (figures,) = classed(tree(shown), "timings")
    assert text_in(figures).endswith(": crashed: SIGSEGV")
    assert " ms" not in text_in(figures)


def test_a_later_measurement_replaces_an_earlier_one(tmp_path: Path) -> None:
    later = timing("errors.a", seconds={"median": 3e-6, "low": 2e-6, "high": 4e-6})
    shown = page_of("errors.a", write(tmp_path / "all.jsonl", [*HEAD, timing("errors.a"), later]))
    assert "3 µs (2 µs to 4 µs, 120 rounds)" in shown
    assert "1.58 ms" not in shown


def test_hostile_text_is_shown_and_not_run(tmp_path: Path) -> None:
    hostile = timing("errors.a", seconds=None, ratios=[], rounds=0, failed=HOSTILE)
    page = tree(page_of("errors.a", write(tmp_path / "all.jsonl", [*HEAD, hostile])))
    assert all(one.get("src") for one in page.iter("script"))
    assert MARKUP in text_in(classed(page, "timings")[0])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (timing("errors.a", target="jax==0.1"), "no target record before it"),
        (timing("errors.a", seconds=None), "either seconds or the reason"),
        (timing("errors.a", failed="crashed"), "either seconds or the reason"),
        (timing("errors.a") | {"colour": "green"}, "unknown field `colour`"),
    ],
)
def test_a_record_that_cannot_be_is_refused(
    record: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ResultsError, match=said):
        load([write(tmp_path / "bad.jsonl", [*HEAD, record])])
