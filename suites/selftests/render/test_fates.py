"""The fate of donated arguments, from the notes of their steps."""

from __future__ import annotations

from typing import Any

import pytest
from records import Record, claim, clause, step, target
from site_pages import results_of
from two_sides import FAILS, ran

from reports.render.site.fates import Fate, fates
from reports.render.site.memory import notes

NEW, SHARD = "new_pmap@0.9.0", "shard_map@0.9.0"
WARNED = {"warnings": [{"category": "UserWarning", "message": "resharding", "count": 1}]}


def donation_step(what: str, taken: int, *deleted: bool, **other: Any) -> Record:
    """A call that reused so many of eight buffers."""
    note = {"what": what, "reused": [taken, 8]}
    return step(extra={"memory": note, "donated deleted": list(deleted)}, **other)


def fates_of(*cells: Record, **peaks: str) -> tuple[Fate, ...]:
    ids = dict.fromkeys(one["clause"] for one in cells)
    several = [clause(id, topologies=["1x8", "2x2", "4x2"]) for id in ids]
    results = results_of(target("0.9.0"), claim("migrate-pmap.errors"), *several, *cells)
    return fates(results, ids, results.targets[0].key, "new_pmap", notes, peaks)


@pytest.mark.parametrize(
    ("name", "seen", "said"),
    [
        ("reused", donation_step("a", 8, True), "donated without a copy, and deleted"),
        ("alive", donation_step("a", 8, False), "donated without a copy; not deleted"),
        ("in part", donation_step("a", 3, True), "donated in part"),
        (
            "copied",
            donation_step("a", 0, True, **WARNED),
            "copied, and the original deleted, with a warning",
        ),
        (
            "one of two is kept",
            donation_step("a", 0, True, False),
            "not donated, silently; the original stays",
        ),
    ],
)
def test_words(name: str, seen: Record, said: str) -> None:
    assert fates_of(ran("donation.a", NEW, seen), a="2.0 times") == (
        Fate(("a",), said, "", "2.0 times"),
    ), name


def test_what_is_refused_is_known_by_what_its_clause_noted_elsewhere() -> None:
    assert fates_of(
        ran("donation.a", NEW, FAILS, topology="2x2"),
        ran("donation.a", SHARD, donation_step("an array elsewhere", 0, False)),
    ) == (Fate(("an array elsewhere",), "", "raises ValueError", ""),)


def test_of_two_calls_that_differ_the_worse_is_told() -> None:
    [one] = fates_of(
        ran(
            "donation.a",
            NEW,
            donation_step("a", 8, True),
            donation_step("a", 0, False, name="second call"),
        )
    )
    [worse] = fates_of(ran("donation.a", NEW, donation_step("a", 0, False)))
    assert one == worse


def test_what_is_hoped_for_comes_first_then_what_was_run_most_widely() -> None:
    found = fates_of(
        ran("donation.a", NEW, donation_step("a", 0, False)),
        ran("donation.b", NEW, donation_step("b", 8, True)),
        *(ran("donation.c", NEW, donation_step("c", 8, True), topology=t) for t in ("1x8", "2x2")),
    )
    assert [one.arguments for one in found] == [("c",), ("b",), ("a",)]


def test_what_fares_alike_is_one_row() -> None:
    cells = [ran(f"donation.{what}", NEW, donation_step(what, 8, True)) for what in "abc"]
    assert [one.arguments for one in fates_of(*cells)] == [("a", "b", "c")]
    assert [one.arguments for one in fates_of(*cells, b="1.0 times")] == [("a", "c"), ("b",)]


def test_topologies_that_differ_are_named() -> None:
    [one] = fates_of(
        ran("donation.a", NEW, donation_step("a", 8, True), topology="2x2"),
        ran("donation.a", NEW, donation_step("a", 0, False), topology="4x2"),
    )
    [better], [worse] = (
        fates_of(ran("donation.a", NEW, donation_step("a", reused, reused > 0)))
        for reused in (8, 0)
    )
    assert one.several == f"on 2x2 {better.one}; on 4x2 {worse.one}"


@pytest.mark.parametrize("verdict", ["removed", "not applicable", "not run"])
def test_what_tells_of_no_program_is_left_out(verdict: str) -> None:
    assert not fates_of(
        ran("donation.a", NEW, verdict=verdict),
        ran("donation.a", SHARD, donation_step("a", 8, True)),
    )


def test_a_clause_without_such_a_note_is_left_out() -> None:
    assert not fates_of(
        ran("donation.a", NEW, step(extra={"memory": {"what": "a", "multiple": 2}}))
    )
