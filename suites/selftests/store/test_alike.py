"""Cells that were recorded alike: what is equal of them, and a question is asked once of all."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from records import (
    Record,
    cause,
    cell,
    claim,
    clause,
    deviation,
    fault,
    finding,
    observation,
    sample_step,
    target,
)
from two_sides import FAILS, FINE, TO, program, ran, read

from conformance.model.records import Cell
from reports.analysis.effects.digest import digest
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.upgrade import upgrade
from reports.render.site.evidence import Views
from reports.store.alike import Once, failed, likeness, of_findings, of_observations
from reports.store.results import load


def text(value: Any) -> bytes:
    return json.dumps([value]).encode()


SEEN = observation({"name": "call", "frames": ["a"]}, seconds=0.25)


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("a duration", {"seconds": 1e-05}, True),
        ("the version's name", {"jax": "0.12.0.1"}, True),
        ("frames", {"steps": [{"name": "call", "frames": ["b", "c"]}]}, True),
        ("what no page compares", {"witness": [{"wrapper": "jit"}]}, True),
        ("a step's name", {"steps": [{"name": "other", "frames": ["a"]}]}, False),
        ("the process", {"process": 1}, False),
        ("a message that looks like a duration", {"steps": [{"m": '"seconds": 1'}]}, False),
    ],
)
def test_what_tells_observations_apart(name: str, other: Record, same: bool) -> None:
    assert (of_observations(text(SEEN)) == of_observations(text(SEEN | other))) is same, name


def test_quoted_text_is_never_left_out() -> None:
    quoted = (f'"seconds": {n} "jax": "{n}" "frames": [{n}]' for n in (1, 2))
    one, other = (SEEN | {"steps": [{"m": m}]} for m in quoted)
    assert of_observations(text(one)) != of_observations(text(other))


def test_findings_that_hold_are_alike_and_those_that_fail_are_not() -> None:
    held = [text({"holds": True, "saw": saw}) for saw in "ab"]
    wrong = [text({"holds": False, "saw": saw}) for saw in "ab"]
    assert of_findings(held[0]) == of_findings(held[1])
    assert len({*map(of_findings, [*held, *wrong])}) == 3


def test_what_is_asked_of_all_at_once_is_not_asked_again() -> None:
    asked: list[str] = []

    def ask(one: Cell) -> str:
        asked.append(one.target)
        return one.verdict.value

    once, cells = Once(ask), alike_and_not()
    once.ask(cells, lambda do, count: map(do, range(count)))
    before = list(asked)
    answers = once.to(ask)
    assert [answers(one) for one in cells] == [one.verdict.value for one in cells]
    # The last has findings that fail and a fault's cell is looked at by itself.
    assert len(before) == len({*before}) >= 2
    assert asked == before


def test_cells_that_judge_one_run_show_the_same_of_it() -> None:
    views, cells = Views(), alike_and_not()
    shown = [views.shown(one.observations) for one in [*cells, *cells]]
    assert all(one is other for one, other in zip(shown[:4], shown[4:], strict=True))
    by_text = {one.observations.text: view for one, view in zip(cells, shown, strict=False)}
    assert len({id(one) for one in shown}) == len(by_text)
    alone = [Views().shown(one.observations) for one in cells]
    assert alone == shown[:4]


def test_a_question_is_asked_once_of_cells_alike_and_again_of_others() -> None:
    asked: list[str] = []

    def ask(one: Cell) -> str:
        asked.append(one.target)
        return one.verdict.value

    once = Once(ask, digest).to(ask)
    cells = alike_and_not()
    assert [once(one) for one in cells] == ["conforms", "conforms", "deviates", "deviates"]
    assert asked == ["jax==0.8.0", "jax==0.10.0", "jax==0.12.0.1"]
    assert digest(cells[0]) == digest(cells[1]) != digest(cells[2])


def test_equal_answers_to_the_shared_question_are_one_object() -> None:
    def ask(one: Cell) -> tuple[str, ...]:
        return (one.verdict.value,)

    def other(one: Cell) -> list[str]:  # which need not be hashable
        return [one.target]

    cells = alike_and_not()
    for ahead in (True, False):
        once = Once(other, ask, shared=ask)
        if ahead:
            once.ask(cells, lambda do, count: map(do, range(count)))
        shared = [once.to(ask)(one) for one in cells]
        assert shared == [ask(one) for one in cells]
        assert len({id(one) for one in shared}) == len({*shared}) == 2
        assert once.to(other)(cells[-1]) == [cells[-1].target]


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({}, True),
        ({"verdict": "known deviation", "deviation": deviation()}, False),
        ({"verdict": "crashed", "fault": fault("crashed")}, False),
    ],
    ids=["alike", "another verdict", "a fault"],
)
def test_cells_that_saw_the_same_are_alike_unless_they_ended_otherwise(
    other: Any, alike: bool
) -> None:
    one, another = loaded({"verdict": "conforms"}, {"verdict": "conforms"} | other)
    assert (likeness(one) == likeness(another)) is alike
    assert (likeness(another) is None) is ("fault" in other)


def test_what_failed_is_found_with_and_without_reading() -> None:
    assert [len(failed(one)) for one in alike_and_not()] == [0, 0, 1, 1]


def alike_and_not() -> list[Cell]:
    """Two cells that did the same, and two of which something else is wrong."""
    wrong = [{"verdict": "deviates", "findings": [finding(saw)]} for saw in ("6", "7")]
    return loaded({"verdict": "conforms"}, {"verdict": "conforms"}, *wrong)


def loaded(*others: dict[str, Any]) -> list[Cell]:
    """Cells of one clause in several versions that saw the same, as read from a file."""
    versions = ("0.8.0", "0.9.0", "0.10.0", "0.12.0.1")
    records = [
        *(target(one) for one in versions),
        claim("migrate-pmap.errors"),
        clause("errors.a", topologies=["1x8"]),
    ]
    for jax, other in zip(versions, others, strict=False):
        place = {"target": f"jax=={jax}", "implementation": "new_pmap", "topology": "1x8"}
        seen = [observation(sample_step()) | {"jax": jax}]
        made = {"findings": [finding(holds=True)], "observations": seen} | place | other
        records.append(cell("errors.a", **made))
    with TemporaryDirectory() as folder:
        file = Path(folder, "results.jsonl")
        file.write_text("".join(json.dumps(one) + "\n" for one in records))
        results = load([file])
    return [outcome.runs[-1].cell for outcome in results.outcomes.values()]


@pytest.mark.parametrize(
    ("name", "alike"), [("the last as well", True), ("the last is other", False)]
)
def test_upgrades_of_one_site_are_as_each_by_itself(name: str, alike: bool) -> None:
    causes = ("a-cause", "a-cause", "a-cause" if alike else "another")
    legacy = [f"legacy_pmap@{jax}" for jax in ("0.7.2", "0.8.0", "0.8.3")]
    known = [{"verdict": "known deviation", "deviation": deviation(cause=one)} for one in causes]
    results = read(
        target("0.7.2"),
        target("0.8.3"),
        *map(cause, ("a-cause", "another")),
        program("errors.a"),
        *(ran("errors.a", at, FAILS, **of) for at, of in zip(legacy, known, strict=True)),
        ran("errors.a", TO, FINE),
        program("errors.b"),
        *(ran("errors.b", at, FINE) for at in legacy[:2]),
        ran("errors.b", legacy[2], FINE if alike else FAILS),
        ran("errors.b", TO, FAILS),
    )
    olds = [side(results, at, "") for at in legacy]
    new, shared = side(results, TO, ""), Effects(results)

    found = [upgrade(shared, old, new) for old in olds]

    assert found == [upgrade(Effects(results), old, new) for old in olds], name
    entries = [one.entries for one in found]
    assert entries[0] == entries[1]
    assert (entries[1] == entries[2]) is alike
