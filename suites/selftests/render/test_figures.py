"""Figures: what is drawn is what was measured, and can be read without colour."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import records as rows
from site_pages import text_in, tree

from conformance.model.records import Cell
from reports.render.chart import HEIGHT, WIDTH, Chart, Point, Series, draw, ticks
from reports.render.measured import moved, times
from reports.render.site.build import render
from reports.render.site.cost import cost_page
from reports.render.site.cost_charts import multiple
from reports.store.outcomes import Outcome, Run
from reports.store.results import load

SVG = "{http://www.w3.org/2000/svg}"


def chart(*series: Series, log: bool = False, even: float | None = None, **other: str) -> Chart:
    return Chart(
        key=other.get("key", "k"),
        title=other.get("title", "A title"),
        description="What it says",
        across="JAX",
        categories=("0.9.0", "0.10.0", "0.12.0.1"),
        upwards="times",
        series=series,
        label=multiple,
        log=log,
        even=even,
    )


def series(*values: float | None, style: int = 0, name: str = "new pmap") -> Series:
    points = (Point(at, v, v * 0.5, v * 2) for at, v in enumerate(values) if v is not None)
    return Series(name, style, tuple(points))


def drawn(of: Chart) -> ElementTree.Element:
    # Within a page the namespace is HTML's affair; a parser of XML wants it said.
    return ElementTree.fromstring(draw(of).replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))


def test_a_figure_says_what_it_is_to_who_cannot_see_it() -> None:
    svg = drawn(chart(series(1, 2, 3)))
    named = {e.get("id"): e.text for e in svg if e.get("id")}
    assert svg.get("role") == "img"
    assert [named[id] for id in (svg.get("aria-labelledby") or "").split()] == [
        "A title",
        "What it says",
    ]


def test_series_differ_in_shape_and_pattern_not_only_in_class() -> None:
    svg = drawn(chart(*(series(1, 2, 3, style=s, name=f"n{s}") for s in range(4))))
    lines = [e.get("stroke-dasharray") for e in svg.iter(f"{SVG}polyline")]
    points = [e for e in svg.iter(f"{SVG}path") if "point" in (e.get("class") or "")]
    shapes = {re.sub(r"^M[-\d.]+,[-\d.]+", "", e.get("d") or "") for e in points}
    assert len(set(lines)) == 4
    assert len(shapes) == 4
    named = {t.text for t in svg.iter(f"{SVG}text") if t.get("class") == "name"}
    assert named == {f"n{style}" for style in range(4)}


def test_no_line_goes_over_what_was_not_measured() -> None:
    assert not list(drawn(chart(series(1, None, 3))).iter(f"{SVG}polyline"))
    assert len(list(drawn(chart(series(1, 2, None))).iter(f"{SVG}polyline"))) == 1


def test_more_is_higher_and_names_do_not_overlap() -> None:
    svg = drawn(chart(series(1, 2, 4), series(1, 2, 4.01, style=1, name="shard_map")))
    line = next(svg.iter(f"{SVG}polyline")).get("points") or ""
    heights = [float(pair.split(",")[1]) for pair in line.split()]
    assert heights == sorted(heights, reverse=True)
    names = [float(t.get("y") or 0) for t in svg.iter(f"{SVG}text") if t.get("class") == "name"]
    assert abs(names[0] - names[1]) >= 12


@pytest.mark.parametrize(
    ("name", "values", "log"),
    [
        ("one value", (1.0,), False),
        ("nothing", (), False),
        ("zero", (0.0, 0.0), False),
        ("zero on a logarithmic axis", (0.0, 3.0), True),
        ("tiny", (1e-9, 2e-9), True),
        ("huge", (1e12, 3e15), True),
        ("many decades", (1e-6, 1e6), True),
    ],
)
def test_everything_lies_in_the_drawing(name: str, values: tuple[float, ...], log: bool) -> None:
    of = chart(series(*values), log=log, title=name)
    assert len(ticks(of)) >= 2
    for element in drawn(of).iter():
        for key, most in (("x", WIDTH), ("y", HEIGHT), ("x1", WIDTH), ("y1", HEIGHT)):
            if element.get(key) is not None:
                assert 0 <= float(element.get(key) or -1) <= most, element.attrib


@pytest.mark.parametrize(("name", "log"), [("linear", False), ("logarithmic", True)])
def test_the_axis_holds_the_spread_and_the_even_line(name: str, log: bool) -> None:
    of = chart(series(3, 5, 7), log=log, even=1.0, title=name)
    marks = ticks(of)
    assert marks[0] <= 1.0
    assert marks[-1] >= 14
    assert marks == sorted(marks)
    assert log or marks[0] == 0


def test_a_hostile_name_is_text() -> None:
    hostile = "<script>alert(1)</script>"
    svg = drawn(chart(series(1, 2, name=hostile), title=hostile, key='"><b>'))
    assert not list(svg.iter(f"{SVG}script"))
    assert hostile in [t.text for t in svg.iter(f"{SVG}text")]


def test_the_table_has_the_same_numbers() -> None:
    of = chart(series(2, None, 30), series(1, 1, 1, style=1, name="shard_map"))
    assert of.table == (
        ("0.9.0", ("2× (1× to 4×)", "1× (0.5× to 2×)")),  # noqa: RUF001
        ("0.10.0", ("–", "1× (0.5× to 2×)")),  # noqa: RUF001
        ("0.12.0.1", ("30× (15× to 60×)", "1× (0.5× to 2×)")),  # noqa: RUF001
    )


MOVED = {"collectives": {"all-gather": 1}, "bytes": 384, "result": 48, "array": 384}


def moving(*notes: object) -> Outcome:
    seen = [
        rows.observation(rows.sample_step(extra={"moved": note}), process=process)
        for process, note in enumerate(notes)
    ]
    record = rows.cell("indexing.a", observations=seen)
    del record["kind"]
    cell = msgspec.convert(record, Cell)
    return Outcome(cell.verdict, "", (Run(cell, "f", "r", 1),))


def test_what_moved_is_of_the_process_that_moved_most() -> None:
    found = moved(moving(MOVED | {"bytes": 0}, MOVED))
    assert found is not None
    assert found.per_result == 8


@pytest.mark.parametrize(
    "note", [None, 3, {}, MOVED | {"bytes": "48"}, MOVED | {"result": 0}, {"collectives": {"a": 1}}]
)
def test_notes_of_another_shape_are_not_measured(note: object) -> None:
    assert moved(moving(note)) is None


def test_a_timing_that_illustrates_several_clauses_is_one(tmp_path: Path) -> None:
    records = [
        rows.target(),
        rows.claim("migrate-pmap.errors"),
        rows.clause("a.a"),
        rows.clause("a.b"),
        rows.cell("a.a"),
        rows.timing("a.a", "a.b"),
    ]
    results = load([rows.write(tmp_path / "r.jsonl", records)])
    assert len(results.timings) == 2
    assert [key.timing for key in times(results)] == ["timing.index.4kib"]


def test_a_ratio_to_legacy_is_drawn_and_its_spread_said(tmp_path: Path) -> None:
    ratio = {"median": 4.0, "low": 3.0, "high": 6.0, "blocks": 3, "rounds": 5, "says": "4 times"}
    records = [
        *(rows.target(v) for v in ("0.9.0", "0.12.0.1")),
        rows.claim("migrate-pmap.errors"),
        rows.clause("a.a"),
        rows.cell("a.a"),
        *(
            rows.timing(
                "a.a",
                timing="timing.dispatch.one",
                contender="call",
                target=f"jax=={v}",
                ratios=[ratio | {"to": "legacy pmap of jax==0.9.0"}],
            )
            for v in ("0.9.0", "0.12.0.1")
        ),
    ]
    results = load([rows.write(tmp_path / "r.jsonl", records)])
    (group,) = cost_page(results).groups
    (figure,) = group.figures
    assert figure.chart.categories == ("0.9.0", "0.12.0.1")
    assert figure.chart.table[1] == ("0.12.0.1", ("4× (3× to 6×)",))  # noqa: RUF001
    (said,) = re.findall(r"new pmap: ([^.;]+(?:\.\d[^.;]*)*)", figure.chart.description)
    assert re.findall(r"\d[\d.]*", said) == ["4", "0.9.0", "4", "0.12.0.1"]
    assert figure.evidence.href == "clauses/a.a.html"
    assert figure.versions == "JAX 0.9.0, 0.12.0.1"
    assert figure.flat.endswith("new pmap: 4× (JAX 0.9.0, 0.12.0.1)")  # noqa: RUF001
    divisor = (
        "1x is legacy pmap on the same JAX. JAX 0.12.0.1 has no legacy pmap: its times are "
        "divided by legacy pmap's on JAX 0.9.0, timed in the same run."
    )
    assert figure.chart.note == divisor
    assert divisor in text_in(tree(render(results)["cost.html"]))


def test_the_ratios_of_the_newest_version_are_told_in_one_line(tmp_path: Path) -> None:
    """One that may be 1 counts as 1."""
    slower = {"median": 4.0, "low": 3.0, "high": 6.0, "blocks": 3, "rounds": 5, "says": "4 times"}
    even = slower | {"median": 1.2, "low": 0.9}
    records = [
        *(rows.target(v) for v in ("0.9.0", "0.12.0.1")),
        rows.claim("migrate-pmap.errors"),
        rows.clause("a.a"),
        rows.cell("a.a"),
        *(
            rows.timing(
                "a.a",
                timing=f"timing.dispatch.{name}",
                contender="call",
                target=f"jax=={v}",
                ratios=[one | {"to": "legacy pmap of jax==0.9.0"}],
            )
            for name, v, one in (
                ("one", "0.9.0", slower | {"median": 5.0}),
                ("one", "0.12.0.1", slower),
                ("psum", "0.12.0.1", even),
            )
        ),
    ]
    [group] = cost_page(load([rows.write(tmp_path / "r.jsonl", records)])).groups
    expected = "On JAX 0.12.0.1: new pmap 1× to 4× the time under legacy pmap"  # noqa: RUF001
    assert group.conclusion == expected


def test_what_an_access_moves_on_a_pod_is_drawn_by_chips_and_versions(tmp_path: Path) -> None:
    records = [
        rows.clause("indexing.a"),
        rows.growth("indexing.a", (8, 8192), (16, 16384), jax="0.12.0.1"),
        rows.growth("indexing.a", (8, 1024)),
        rows.growth("indexing.gone", (8, 0)),
    ]
    page = cost_page(load([rows.write(tmp_path / "pods.jsonl", records)]))
    (group,) = page.groups
    assert group.anchor == "pods"
    assert "1 KiB" in group.sentence
    assert "not run" in group.sentence
    first, other = group.figures
    assert first.chart.title.endswith(", TPU v5p")
    assert first.chart.categories == ("8", "16")
    assert [one.name for one in first.chart.series] == ["jax 0.9.0", "jax 0.12.0.1"]
    dash = "–"  # noqa: RUF001
    assert first.chart.table == (("8", ("1×", "8×")), ("16", (dash, "16×")))  # noqa: RUF001
    assert first.evidence.href == "clauses/indexing.a.html"
    assert other.evidence.href == "", "a clause that these results do not have has no page"
    for chart, points in ((first.chart, 3), (other.chart, 1)):
        drawn = re.findall(r'<path class="point ', ElementTree.canonicalize(chart.svg))
        assert len(drawn) == points + len(chart.series), "nought is drawn as well"


@pytest.mark.parametrize("verdict", ["removed", "not applicable"])
def test_a_ratio_names_the_version_of_the_other_side_and_why_there_is_none(
    tmp_path: Path, verdict: str
) -> None:
    """What a version does not have is gone, although its test does not apply to it anywhere."""
    to = [{"median": 2.0, "low": 1.5, "high": 3.0, "blocks": 3, "rounds": 20, "says": "2 times"}]
    to = [one | {"to": "legacy pmap of jax==0.9.0"} for one in to]

    def taken(jax: str, implementation: str) -> rows.Record:
        where = {"target": f"jax=={jax}", "implementation": implementation}
        named = {"timing": "timing.dispatch.one", "contender": "call", "ratios": to}
        return rows.timing("errors.a", **named, **where)

    gone = {"target": "jax==0.12.0.1", "implementation": "legacy_pmap"}
    records = [
        rows.target("0.9.0"),
        rows.target("0.12.0.1"),
        rows.claim("migrate-pmap.errors"),
        rows.clause("errors.a"),
        rows.cell("errors.a"),
        rows.cell("errors.a", target="jax==0.12.0.1"),
        rows.cell("errors.a", verdict, **gone),
        rows.clause("errors.b"),
        rows.cell("errors.b", "removed", **gone),
        taken("0.9.0", "legacy_pmap"),
        taken("0.9.0", "new_pmap"),
        taken("0.12.0.1", "new_pmap"),
    ]
    [group] = cost_page(load([rows.write(tmp_path / "r.jsonl", records)])).groups
    chart = group.figures[0].chart
    assert chart.upwards == "time / time under legacy pmap"
    assert chart.note == (
        "1x is legacy pmap on the same JAX. JAX 0.12.0.1 has no legacy pmap: its times are "
        "divided by legacy pmap's on JAX 0.9.0, timed in the same run."
    )
    assert [one.name for one in chart.series] == ["legacy pmap", "new pmap"]
    assert dict(chart.table)["0.12.0.1"][0] == "gone"
