"""The severity of a claim that does not hold."""

from __future__ import annotations

from typing import Any

import pytest
from digests import died, digest_of
from records import finding, raised, returned

from reports.analysis.effects.severity import Severity, severity_of
from reports.store.codes import WITHOUT_THE_FIX

REFUSED, WORKS = raised("ValueError", "no"), returned([1.0])
NUMBERS = "same shape, wrong values: [2.]"


def harm_of(
    step: dict[str, Any], saw: str, code: str, expected: str = "", *, fix: bool = False
) -> Severity:
    """Return the severity of a cell with one step and one finding that does not hold."""
    wrong = finding(saw, code, step=step["name"])
    return severity_of(
        digest_of(step, findings=[wrong | {"expected": expected or "returns it"}]), fix=fix
    )


@pytest.mark.parametrize(
    ("which", "step", "saw", "code"),
    [
        (Severity.WRONG_NUMBERS, WORKS, NUMBERS, "value"),
        (Severity.WRONG_NUMBERS, WORKS, "shape [1] in place of [2]", "shape"),
        (Severity.WRONG_NUMBERS, WORKS, "it is this process's part of its own data", "note"),
        (Severity.REST, WORKS, "WRONG: no local values to compare: 'x'", "value"),
        (Severity.REST, WORKS, "no error, and the right values: [1.]", "error"),
        (Severity.RAISES, REFUSED, "raised ValueError: no", "error"),
        (Severity.COSTS, WORKS, "1 all-reduce, 48 B", "collective"),
        (Severity.COSTS, WORKS, "twice its bytes", "memory"),
        (Severity.REST, WORKS, "nothing said", "warning"),
    ],
)
def test_what_happens_decides(which: Severity, step: dict[str, Any], saw: str, code: str) -> None:
    assert harm_of(step, saw, code) is which


def test_another_error_than_the_announced_one_is_no_surprise() -> None:
    saw = "raised ValueError: no"
    assert harm_of(REFUSED, saw, "error", "raises KeyError") is Severity.REST
    assert harm_of(REFUSED, saw, "error", "returns it") is Severity.RAISES


def test_a_fix_that_fails_is_that_unless_it_does_worse() -> None:
    assert harm_of(REFUSED, "raised ValueError: no", "error", fix=True) is Severity.FIX_FAILS
    assert harm_of(WORKS, "1 all-reduce", "collective", fix=True) is Severity.FIX_FAILS
    assert harm_of(WORKS, NUMBERS, "value", fix=True) is Severity.WRONG_NUMBERS


def test_what_a_fix_shows_without_it_does_not_count() -> None:
    without = raised("ValueError", "no", name=WITHOUT_THE_FIX)
    assert harm_of(without, "raised ValueError: no", "error", fix=True) is Severity.REST


@pytest.mark.parametrize(
    ("which", "name", "saw"),
    [
        (Severity.DIES, "process 0", "hangs | made"),
        (Severity.DIES, "process 1", "SIGABRT | sum 3.0"),
        (Severity.REST, "process 0", "exit 1 | sum 3.0"),
        (Severity.REST, "first call", "hangs on to it"),
    ],
)
def test_a_process_of_a_job_that_hangs_or_is_killed(which: Severity, name: str, saw: str) -> None:
    step = returned([1.0], name=name) | {"extra": {"text": saw}}
    assert harm_of(step, saw, "note", "ends with status 0") is which


def test_a_death_is_the_most_severe_and_what_was_not_seen_the_least() -> None:
    assert severity_of(died("crashed", "SIGABRT"), fix=True) is Severity.DIES
    assert severity_of(died("hung"), fix=False) is Severity.DIES
    assert severity_of(None, fix=False) is Severity.REST


def test_every_harm_has_its_place_and_a_colour() -> None:
    assert [one.rank for one in Severity] == list(range(len(Severity)))
    assert all(one.effect for one in Severity)
