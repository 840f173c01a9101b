"""Explanations of changes between cells that conform: a known issue, its end, or a claim."""

from __future__ import annotations

from typing import Any

import pytest
from records import (
    Record,
    cause,
    claim,
    deviation,
    finding,
    leaf,
    observation,
    raised,
    returned,
)
from two_sides import EVERYWHERE, FROM, TO, made, program, ran, read

from reports.analysis.effects.changed import Entry, Group
from reports.analysis.effects.edits import edits
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.explained import By
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.upgrade import upgrade
from reports.render.text.upgrade import as_json

RETRACED = "own-output-traced-again"
STAYS = "results-stay-on-all-devices"


def turn(name: str, traced: int, compiled: int, **other: Any) -> Record:
    """A step of a loop, with what it traced and compiled once more."""
    again = {"again": {"traced": traced, "compiled": compiled}}
    return returned([1.0], name=name, compiled=compiled, extra=again) | other


FIRST = turn("step 1", 1, 1)


def of_steps(old: list[Record], new: list[Record], *causes: str) -> list[str]:
    """The causes of the entries of an upgrade of one program; empty where one has none."""
    id = "idioms.a"
    records = [program(id), ran(id, FROM, *old), ran(id, TO, *new)]
    found = made(*map(cause, causes or (RETRACED, STAYS)), *records)
    return [entry.cause.cause if entry.cause else "" for entry in found.entries]


@pytest.mark.parametrize(
    ("case", "name", "traced", "compiled", "causes"),
    [
        ("its body in a later step", "step 2", 1, 1, [RETRACED]),
        ("its body later still", "step 4", 1, 2, [RETRACED]),
        ("something else than its body", "step 2", 0, 1, [""]),
        ("a repeated call, of the same arguments", "second call", 1, 1, [""]),
        ("nothing", "step 2", 0, 0, []),
        ("a first step, which compiles anyway", "step 1", 1, 1, []),
    ],
)
def test_the_evidence_is_that_the_body_is_traced_in_a_later_step(
    case: str, name: str, traced: int, compiled: int, causes: list[str]
) -> None:
    old, new = [turn(name, 0, 0)], [turn(name, traced, compiled)]
    assert of_steps([FIRST, *old], [FIRST, *new]) == causes, case


def test_a_cause_that_the_results_do_not_carry_is_not_named() -> None:
    old, new = [FIRST, turn("step 2", 0, 0)], [FIRST, turn("step 2", 1, 1)]
    assert of_steps(old, new, STAYS) == [""]


def test_what_differs_in_another_step_explains_nothing() -> None:
    elsewhere = {"committed": False}
    old = [
        FIRST,
        turn("step 2", 0, 0),
        returned(
            leaf([1.0], **elsewhere),
            name="step 3",
        ),
    ]
    new = [FIRST, turn("step 2", 0, 1), returned([1.0], name="step 3")]
    assert of_steps(old, new) == [""]


@pytest.mark.parametrize(
    ("case", "was", "causes"),
    [
        ("on more devices", {"sharding": {"devices": [0]}}, [STAYS]),
        ("bound to its devices", {"committed": False}, [STAYS]),
        ("in another memory", {"sharding": {"devices": [0, 1], "memory_kind": "host"}}, [""]),
    ],
)
def test_an_entry_of_the_field_in_which_it_shows_explains_it(
    case: str, was: Record, causes: list[str]
) -> None:
    assert of_steps([returned(leaf([1.0], **was))], [returned([1.0])]) == causes, case


@pytest.mark.parametrize(("to", "explained"), [("shard_map@0.9.0", ""), ("new_pmap@0.9.0", STAYS)])
def test_that_shard_map_holds_all_rows_is_no_deviations_doing(to: str, explained: str) -> None:
    """A deviation of the cell is about something else; under pmap it is what happened."""
    wider = returned(leaf([1.0], shape=[2], sharding={"devices": [0, 1, 2, 3]}))
    entry = deviation(cause=STAYS)
    results = read(
        cause(STAYS),
        program("donation.a"),
        ran("donation.a", FROM, returned([1.0])),
        ran("donation.a", to, wider, verdict="known deviation", deviation=entry),
    )

    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, to, "--to"))
    [one] = found.entries
    assert "all processes' rows" in one.example.shown.sentence
    assert (one.cause.cause if one.cause else "") == explained


REFUSED = raised("ValueError", "Received incompatible devices for jitted computation.")
SAYS_SO = EVERYWHERE | {"new_pmap": "raises ValueError"}
STATEMENT = "What migrate-pmap.errors says"


def only(*records: Record, to: str = TO) -> Entry:
    """The one entry of an upgrade."""
    results = read(*records)
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, to, "--to"))
    [one] = found.entries
    told = as_json(results, found)["groups"][0]["entries"][0]
    assert told["explained_by"] == one.by.value
    return one


@pytest.mark.parametrize(
    ("case", "other", "by"),
    [
        ("the claim says that it raises", {}, By.DOCUMENT),
        ("the clause expects the same of both", {"expected": EVERYWHERE}, By.NOTHING),
        ("the claim is what documents leave open", {"claim": "silence.a"}, By.NOTHING),
    ],
)
def test_a_claim_explains_what_both_cells_do_as_it_says(
    case: str, other: dict[str, Any], by: By
) -> None:
    one = only(
        claim("silence.a", claim_kind="silence"),
        program("errors.a", **{"expected": SAYS_SO} | other),
        ran("errors.a", FROM, returned([1.0])),
        ran("errors.a", TO, REFUSED),
    )
    assert one.by is by, case
    assert (one.title == f"As documented: {STATEMENT}") is (by is By.DOCUMENT)


@pytest.mark.parametrize(("case", "wrong"), [("old", FROM), ("new", TO)])
def test_no_claim_explains_a_step_in_which_a_cell_deviates(case: str, wrong: str) -> None:
    failed = {"verdict": "known deviation", "findings": [finding("wrong")]}
    sides = ((FROM, returned([1.0])), (TO, REFUSED))
    cells = [ran("errors.a", on, s, **failed if on == wrong else {}) for on, s in sides]
    assert only(program("errors.a", expected=SAYS_SO), *cells).by is By.NOTHING, case


def test_an_entrys_claim_is_said_with_what_follows_from_it() -> None:
    """Whatever the clause's own claim is; and programs of one such claim are one entry."""
    view = "migrate-pmap.shard-map-global-view"
    ids = ("indexing.a", "outputs.host.b")
    one = only(
        claim(view),
        *(program(id) for id in ids),
        *(ran(id, FROM, returned([1.0]), topology="2x2") for id in ids),
        *(ran(id, "shard_map@0.9.0", returned([2.0]), topology="2x2") for id in ids),
        to="shard_map@0.9.0",
    )
    assert (one.by, one.claim, one.clauses) == (By.DOCUMENT, view, ids)
    assert one.title.endswith(f": What {view} says")
    assert one.sentence.startswith("In several processes")


def test_fixes_are_of_the_programs_that_the_claim_is_about() -> None:
    view = "migrate-pmap.shard-map-global-view"
    to = "shard_map@0.9.0"
    records = [claim(view)]
    for id, of in (("indexing.a", view), ("indexing.b", "migrate-pmap.errors")):
        records += [
            program(id, claim=of),
            program(f"{id}.fix", fixes=id),
            ran(id, FROM, returned([1.0]), topology="2x2"),
            ran(id, to, returned([2.0]), topology="2x2"),
        ]
    one = only(*records, to=to)
    assert one.clauses == ("indexing.a", "indexing.b")
    assert [remedy.clause for remedy in one.remedies] == ["indexing.a.fix"]


def test_no_claim_of_an_entry_tells_versions_of_one_implementation_apart() -> None:
    """What shard_map gave otherwise before is no doing of its global view."""
    old, new = "shard_map@0.8.0", "shard_map@0.9.0"
    results = read(
        claim("migrate-pmap.shard-map-global-view"),
        program("indexing.a"),
        ran("indexing.a", old, returned([1.0]), topology="2x2"),
        ran("indexing.a", new, returned([2.0]), topology="2x2"),
    )
    sides = side(results, old, "--from"), side(results, new, "--to")
    [one] = upgrade(Effects(results), *sides).entries
    assert (one.effect, one.by) == (Effect.WRONG_NUMBERS, By.NOTHING)


def records(**old: Any) -> list[Record]:
    known = {"verdict": "known deviation", "deviation": deviation(cause=STAYS)}
    return [
        cause(STAYS),
        program("errors.a"),
        ran("errors.a", FROM, returned([1.0]), **known | old),
        ran("errors.a", TO, REFUSED),
    ]


def test_a_cause_that_ended_explains_the_step_in_which_it_showed() -> None:
    one = only(*records(findings=[finding("no error")]))
    assert (one.by, one.cause and one.cause.cause) == (By.ENDED, STAYS)
    assert one.group is Group.RAISES, "the program worked before"
    assert one.title == f"Raises the expected error now. Before: Title of {STAYS}"


def test_a_warning_that_is_expected_needs_no_fix() -> None:
    warned = returned([1.0], warnings=[{"category": "UserWarning", "message": "unusable"}])
    records = [
        cause(STAYS),
        program("errors.a"),
        ran(
            "errors.a",
            FROM,
            returned([1.0]),
            verdict="known deviation",
            deviation=deviation(cause=STAYS),
            findings=[finding("no warning")],
        ),
        ran("errors.a", TO, warned),
    ]
    one = only(*records)
    assert (one.group, one.by) == (Group.WARNS, By.ENDED)
    results = read(*records)
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))
    assert edits(found).unknown == ()


@pytest.mark.parametrize(
    ("case", "old"),
    [
        ("wrong values", {"findings": [finding("no error"), finding("wrong", "value")]}),
        (
            "an error in one process of two",
            {
                "findings": [finding("no error")],
                "observations": [
                    observation(returned([1.0])),
                    observation(raised("ValueError", "no"), process=1),
                ],
            },
        ),
    ],
)
def test_a_cause_that_ended_of_programs_that_failed_is_fixed(case: str, old: Record) -> None:
    both = [observation(REFUSED, process=process) for process in range(2)]
    entry = {"verdict": "known deviation", "deviation": deviation(cause=STAYS)}
    one = only(
        cause(STAYS),
        program("errors.a"),
        ran("errors.a", FROM, returned([1.0]), **entry | old),
        ran("errors.a", TO, REFUSED, observations=both),
    )
    assert (one.group, one.effect) == (Group.REPAIRED, Effect.REPAIRED), case
    assert (one.by, one.title) == (By.CAUSE, f"Title of {STAYS}"), case


@pytest.mark.parametrize(
    ("case", "old"),
    [
        ("another step", {"findings": [finding("no error", step="second call")]}),
        ("no cause", {"findings": [finding("?")], "deviation": deviation()}),
    ],
)
def test_it_explains_nothing_else(case: str, old: dict[str, Any]) -> None:
    assert only(*records(**old)).by is By.NOTHING, case


@pytest.mark.parametrize(
    ("case", "id", "new", "by"),
    [
        ("in its clause", "donation.copied.a", REFUSED, By.CAUSE),
        ("in another", "donation.kept.a", REFUSED, By.NOTHING),
        ("of another shape", "donation.copied.a", raised("ValueError", "no"), By.NOTHING),
    ],
)
def test_an_entry_of_the_known_changes_explains_its_clauses(
    case: str, id: str, new: Record, by: By
) -> None:
    to, slug = "shard_map@0.9.0", "shard-map-refuses-other-devices"
    cells = ran(id, FROM, returned([1.0])), ran(id, to, new)
    one = only(cause(slug), program(id), *cells, to=to)
    assert one.by is by, case
    assert (one.cause.cause if one.cause else "") == (slug if by is By.CAUSE else "")


@pytest.mark.parametrize(
    ("case", "before", "after", "slug"),
    [
        ("by what was wrong", STAYS, RETRACED, STAYS),
        ("by what lets it pass now", "", RETRACED, RETRACED),
        ("by nothing", "", "", ""),
    ],
)
def test_what_no_longer_raises_is_told(case: str, before: str, after: str, slug: str) -> None:
    excused = {"verdict": "known deviation"}
    sides = ((FROM, REFUSED, before), (TO, returned([1.0]), after))
    cells = [
        ran("errors.a", on, step, **(excused | {"deviation": deviation(cause=of)}) if of else {})
        for on, step, of in sides
    ]
    one = only(cause(STAYS), cause(RETRACED), program("errors.a", expected=SAYS_SO), *cells)
    assert one.effect is Effect.REPAIRED, case
    assert (one.cause.cause if one.cause else "") == slug
    assert one.by is (By.CAUSE if slug else By.NOTHING)
