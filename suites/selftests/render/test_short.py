"""A subject in short, from what stands on its page at length."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from conformance.model.verdicts import Verdict
from reports.render.site.hazards import HazardView, PlaceRow
from reports.render.site.memory import Figure, Row, Table
from reports.render.site.short import hazards, memory, peaks


def hazard(effect: str, *rows: tuple[str, ...]) -> HazardView:
    names = ("anchor", "sentence", "example", "where", "signals", "news", "shown", "edit")
    told: Any = dict.fromkeys(names, "")
    places = tuple(PlaceRow("new pmap", cells) for cells in rows)
    return HazardView(
        effect=effect, title=f"It {effect}", cause=None, rows=places, clauses=(), more=0, **told
    )


def figure(multiple: str, missing: str = "", verdict: Verdict = Verdict.CONFORMS) -> Figure:
    return Figure(multiple, "", verdict, "", "", missing)


def table(what: str, topology: str, *figures: Figure | None) -> Table:
    return Table(what, "", topology, tuple(Row("jax", (one,)) for one in figures))


@pytest.mark.parametrize(
    ("rows", "count", "line"),
    [
        ([("no", "1x8")], "none", "It crashes: up to 0.9.0: crashes"),
        ([("1x8", "no")], "1", "It crashes: crashes"),
        ([("no", "1x8"), ("2x2", "")], "1", "It crashes: crashes"),
    ],
)
def test_the_newest_is_counted(rows: list[tuple[str, ...]], count: str, line: str) -> None:
    [said] = hazards([hazard("crashes", *rows)], ("0.12.0", "0.9.0"))
    assert (said.text, said.lines) == (f"On JAX 0.12.0: {count}", (line,))


def test_what_one_did_of_old_is_told_where_it_still_does_something() -> None:
    some = [hazard("raises", ("1x8", "no")), hazard("crashes", ("no", "1x8"))]
    same = [replace(one, title="Both") for one in some]
    [said] = hazards(same, ("0.12.0", "0.9.0"))
    assert said.lines == ("Both: raises (up to 0.9.0: crashes)",)


def test_none_is_said_and_leads_nowhere() -> None:
    assert [one.anchor for one in hazards([], ("0.12.0",))] == [""]


def test_the_least_comes_first_and_what_has_no_figure_last() -> None:
    tables = [
        table("A refused one", "1x8", figure("", "raises ValueError")),
        table("copied", "1x8", figure("2.04")),
        table("reused", "1x8", figure("1.00")),
    ]
    [said] = memory(tables, 0, 0, "new pmap")
    assert said.text == "In multiples of the argument, new pmap"
    assert said.lines == (
        "reused: 1.0 times on 1x8",
        "copied: 2.0 times on 1x8",
        "A refused one: raises ValueError on 1x8",
    )


def test_topologies_that_agree_are_one_and_others_are_named() -> None:
    tables = [
        table("a", "1x8", figure("1.0")),
        table("a", "2x2", figure("1.01")),
        table("b", "1x8", figure("2.9")),
        table("b", "2x2", figure("2.0")),
    ]
    [said] = memory(tables, 0, 0, "new pmap")
    assert [re.findall(r"\d\.\d|\dx\d", one) for one in said.lines] == [
        ["1.0", "1x8", "2x2"],
        ["2.9", "1x8", "2.0", "2x2"],
    ]


def test_it_is_of_the_version_that_is_asked_for() -> None:
    [said] = memory([table("a", "1x8", figure("1.0"), figure("3.0"))], 0, 1, "new pmap")
    assert said.lines == ("a: 3.0 times on 1x8",)


def test_peaks_are_of_what_has_a_figure() -> None:
    tables = [
        table("a", "1x8", figure("", "raises ValueError")),
        table("a", "2x2", figure("2.0")),
        table("b", "1x8", figure("", "raises ValueError")),
    ]
    assert peaks(tables, 0, 0) == {"a": "2.0 times on 2x2"}


def test_where_nothing_was_measured_nothing_is_said() -> None:
    assert not [*memory([table("a", "1x8", None)], 0, 0, "new pmap")]


def test_what_another_implementation_alone_runs_is_left_out() -> None:
    tables = [
        table("a", "1x8", figure("2.0")),
        table("a plain jit", "1x8", figure("", "not run", Verdict.NOT_RUN)),
    ]
    [said] = memory(tables, 0, 0, "new pmap")
    assert said.lines == ("a: 2.0 times on 1x8",)
