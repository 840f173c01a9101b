"""What is felt between cells that conform has the cause that a comparison's entry names for it."""

from __future__ import annotations

from typing import Any
from unittest import TestCase

from parameterized import parameterized
from sample_results import Record, cause, deviation
from test_effects import leaf, returned, step
from test_upgrade import FROM, TO, made, program, ran, read

from reports.effects.pairs import Effects, side
from reports.effects.upgrade import upgrade

RETRACED = "own-output-traced-again"
STAYS = "results-stay-on-all-devices"


def turn(name: str, traced: int, compiled: int, **other: Any) -> Record:
    """A step of a loop, with what it traced and compiled once more."""
    again = {"again": {"traced": traced, "compiled": compiled}}
    return step(name, value={"leaves": [leaf([1.0])]}, compiled=compiled, extra=again) | other


FIRST = turn("step 1", 1, 1)


def of_steps(old: list[Record], new: list[Record], *causes: str) -> list[str]:
    """The causes of the entries of an upgrade of one program; empty where one has none."""
    id = "idioms.a"
    records = [program(id), ran(id, FROM, *old), ran(id, TO, *new)]
    found = made(*map(cause, causes or (RETRACED, STAYS)), *records)
    return [entry.cause.cause if entry.cause else "" for entry in found.entries]


class TestTracedAgain(TestCase):
    @parameterized.expand(
        [
            ("its body in a later step", "step 2", 1, 1, [RETRACED]),
            ("its body later still", "step 4", 1, 2, [RETRACED]),
            ("something else than its body", "step 2", 0, 1, [""]),
            ("a repeated call, of the same arguments", "second call", 1, 1, [""]),
            ("nothing", "step 2", 0, 0, []),
            ("a first step, which compiles anyway", "step 1", 1, 1, []),
        ]
    )
    def test_the_evidence_is_that_the_body_is_traced_in_a_later_step(
        self, case: str, name: str, traced: int, compiled: int, causes: list[str]
    ) -> None:
        old, new = [turn(name, 0, 0)], [turn(name, traced, compiled)]
        assert of_steps([FIRST, *old], [FIRST, *new]) == causes, case

    def test_a_cause_that_the_results_do_not_carry_is_not_named(self) -> None:
        old, new = [FIRST, turn("step 2", 0, 0)], [FIRST, turn("step 2", 1, 1)]
        assert of_steps(old, new, STAYS) == [""]

    def test_what_differs_in_another_step_explains_nothing(self) -> None:
        elsewhere = {"committed": False}
        old = [FIRST, turn("step 2", 0, 0), returned(1.0, name="step 3", **elsewhere)]
        new = [FIRST, turn("step 2", 0, 1), returned(1.0, name="step 3")]
        assert of_steps(old, new) == [""]


class TestLiesElsewhere(TestCase):
    @parameterized.expand(
        [
            ("on more devices", {"sharding": {"devices": [0]}}, [STAYS]),
            ("bound to its devices", {"committed": False}, [STAYS]),
            ("in another memory", {"sharding": {"devices": [0, 1], "memory_kind": "host"}}, [""]),
        ]
    )
    def test_an_entry_of_the_field_in_which_it_shows_explains_it(
        self, case: str, was: Record, causes: list[str]
    ) -> None:
        assert of_steps([returned(1.0, **was)], [returned(1.0)]) == causes, case


class TestAllRows(TestCase):
    @parameterized.expand([("shard_map@0.9.0", ""), ("new_pmap@0.9.0", STAYS)])
    def test_that_shard_map_holds_all_rows_is_no_deviations_doing(
        self, to: str, explained: str
    ) -> None:
        """A deviation of the cell is about something else; under pmap it is what happened."""
        wider = returned(1.0, shape=[2], sharding={"devices": [0, 1, 2, 3]})
        entry = deviation(cause=STAYS)
        results = read(
            cause(STAYS),
            program("donation.a"),
            ran("donation.a", FROM, returned(1.0)),
            ran("donation.a", to, wider, verdict="known deviation", deviation=entry),
        )

        found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, to, "--to"))
        [one] = found.entries
        assert "all processes' rows" in one.example.felt.sentence
        assert (one.cause.cause if one.cause else "") == explained
