"""Known issues by version: what counts for whom, and which version is safest."""

from __future__ import annotations

import pytest
from recorded_steps import finding, returned
from sample_results import Record, cause, deviation
from two_sides import FAILS, HEAD, known, program, ran, read

from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.render.site.issues import Risk, Where, grid, issues, place_rows, risk
from reports.render.site.known import safe_rows
from reports.render.site.uses import Use, default_implementation

ORDINARY, PART, UNUSUAL = "results-stay-on-all-devices", "part-of-it", "axis-name-must-be-text"
NEW = Where("new_pmap", "0.9.0")
WRONG = finding("first call", "same shape, wrong values: [2.]", "value")


def shown(slug: str, clause: str, topology: str = "1x8", **of_cause: str) -> list[Record]:
    """A known issue by which a program fails under the new pmap in 0.9.0."""
    return [cause(slug, **of_cause), *known(clause, slug, FAILS, topology)]


def test_one_defect_counts_once_and_an_unusual_argument_not_at_all() -> None:
    effects = Effects(
        read(
            *HEAD,
            *shown(ORDINARY, "idioms.a"),
            *shown(PART, "idioms.b", part_of=ORDINARY),
            *shown(UNUSUAL, "errors.c"),
        )
    )

    assert len(issues(effects)) == 3
    assert risk(effects, NEW, "one") == Risk(fatal=0, wrong=0, errors=1, costs=0)
    assert [row.title for row in grid(effects, Use.PMAP).rows] == [
        f"Title of {ORDINARY}",
        f"Title of {UNUSUAL}",
    ]


def test_an_issue_with_several_processes_is_no_risk_of_one() -> None:
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a", "2x2")))

    several = risk(effects, NEW, "several")
    assert several is not None
    assert several.errors == 1
    assert risk(effects, NEW, "one") is None  # no test of it was run with one process


@pytest.mark.parametrize(
    ("slug", "effect"),
    [("cpu-ids-by-2048", Effect.OTHER_OUTPUT), (ORDINARY, Effect.WRONG_NUMBERS)],
)
def test_device_numbers_are_no_wrong_values(slug: str, effect: Effect) -> None:
    records = [cause(slug), *known("idioms.a", slug, returned(2.0))]
    records = [
        one | {"findings": [WRONG]} if one.get("verdict") == "known deviation" else one
        for one in records
    ]
    [issue] = issues(Effects(read(*HEAD, *records)))

    assert issue.at(NEW) is effect


def test_the_version_with_the_least_risk_is_marked() -> None:
    fine = ran("idioms.a", "new_pmap@0.8.0", returned(1.0))
    rows = safe_rows(Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), fine)), Use.PMAP)

    assert [(row.jax, row.implementation, row.best_one) for row in rows] == [
        ("0.9.0", "new pmap", False),
        ("0.8.0", "new pmap", True),
    ]


@pytest.mark.parametrize(
    ("jax", "implementation"),
    [("0.7.2", "legacy_pmap"), ("0.8.0", "new_pmap"), ("0.12.0.1", "new_pmap")],
)
def test_what_pmap_is_by_default(jax: str, implementation: str) -> None:
    assert default_implementation(jax) == implementation
    assert Use.PMAP.implementation(jax) == implementation
    assert Use.LEGACY.implementation(jax) == "legacy_pmap"


def test_a_version_in_which_an_issue_was_not_tested_is_not_the_safest() -> None:
    records = [*HEAD, *shown(ORDINARY, "idioms.a"), program("idioms.b")]
    other = ran("idioms.b", "new_pmap@0.8.0", returned(1.0))
    fine = ran("idioms.b", "new_pmap@0.9.0", FAILS, verdict="known deviation")
    fine["deviation"] = deviation(cause=PART)
    rows = safe_rows(Effects(read(*records, cause(PART), other, fine)), Use.PMAP)

    assert [(row.jax, row.untested_one, row.best_one) for row in rows] == [
        ("0.9.0", 0, True),
        ("0.8.0", 1, False),
    ]


def test_a_program_that_fails_by_another_issue_is_not_unaffected() -> None:
    entry = deviation(cause=PART)
    other = ran("idioms.a", "new_pmap@0.8.0", FAILS, verdict="known deviation", deviation=entry)
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), cause(PART), other))

    [row] = [one for one in grid(effects, Use.PMAP).rows if one.title == f"Title of {ORDINARY}"]
    assert [cell.says for cell in row.cells] == ["another issue", "error (one process)"]


def test_an_implementation_that_is_removed_shows_only_what_asks_for_it() -> None:
    records = [*HEAD, cause(ORDINARY), program("idioms.a"), program("idioms.b")]
    entry = deviation(cause=ORDINARY)
    for side in ("legacy_pmap@0.8.0", "jax@0.8.0", "jax@0.9.0"):
        records.append(ran("idioms.a", side, FAILS, verdict="known deviation", deviation=entry))
    records.append(ran("idioms.b", "legacy_pmap@0.9.0", verdict="removed"))
    effects = Effects(read(*records))
    [issue] = issues(effects)

    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["legacy_pmap"] == ["error", "removed"]
    asks = ran("idioms.a", "legacy_pmap@0.9.0", FAILS, verdict="known deviation", deviation=entry)
    effects = Effects(read(*records, asks))
    [issue] = issues(effects)
    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["legacy_pmap"] == ["error", "error"]


@pytest.mark.parametrize(("names", "one"), [(("process 0", "process 1"), 0), (("process 0",), 1)])
def test_a_plain_program_that_starts_several_processes_is_not_one(
    names: tuple[str, ...], one: int
) -> None:
    steps = [FAILS | {"name": name} for name in names]
    entry = deviation(cause=ORDINARY)
    shows = ran("idioms.a", "jax@0.9.0", *steps, verdict="known deviation", deviation=entry)
    [issue] = issues(Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), shows)))

    assert (len(issue.one), len(issue.several)) == (one, 1 - one)


def test_an_issue_that_legacy_pmap_shows_too_is_no_new_effect() -> None:
    entry = deviation(cause=ORDINARY)
    records = [
        ran("idioms.a", side, FAILS, verdict="known deviation", deviation=entry)
        for side in ("legacy_pmap@0.8.0", "new_pmap@0.8.0", "new_pmap@0.9.0")
    ]
    effects = Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), *records))
    [issue] = issues(effects)

    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["new_pmap"] == ["no new effect", "no new effect"]
