"""Findings carry a code beside their text, so that wrong values are not recognized by prose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.spec.arrays import returns_weak
from conformance.spec.aspects import COMMITTED, OUTCOME, WARNINGS, figure
from conformance.spec.codes import Code, Problem, code_of
from conformance.spec.expectation import OfEachStep, noted, raises, returns, sharded
from conformance.spec.expected import Expectation
from conformance.spec.observation import Leaf, Observation, Raised, Step
from conformance.spec.topology import Topology

ONE = Topology(1, 2)
RIGHT = np.float32([1, 2])


def leaf(values: Any) -> Leaf:
    array = np.asarray(values)
    sharding = {"type": "NamedSharding", "spec": ["i"], "mesh": {}, "devices": [0, 1]}
    return Leaf("", "ArrayImpl", array.shape, str(array.dtype), array, sharding=sharding)


def returned(values: Any, **extra: Any) -> Step:
    return Step("first call", (leaf(values),), extra=extra)


RAISED = Step("first call", raised=Raised("ValueError", ("Exception",), "trace", "no"))
model = returns(lambda place: RIGHT)
refused = raises(ValueError, "no", otherwise=lambda place: RIGHT)


def found(expected: Expectation, step: Step) -> Any:
    second = Step("second call", step.leaves, step.raised, extra=step.extra)
    seen = Observation(0, "0.9.0", 1, (step, second), ())
    return expected.check(ONE, [seen])[0]


@pytest.mark.parametrize(
    ("name", "expected", "step", "code"),
    [
        ("other numbers", model, returned(np.float32([1, 3])), Code.VALUE),
        ("another shape", model, returned(np.float32([1])), Code.SHAPE),
        ("another dtype", model, returned(np.int32([1, 2])), Code.DTYPE),
        (
            "a weak type",
            returns_weak(lambda place: RIGHT, lambda place: [True]),
            returned(RIGHT),
            Code.WEAK_TYPE,
        ),
        ("an error instead", model, RAISED, Code.ERROR),
        ("no error, right", refused, returned(RIGHT), Code.ERROR),
        ("no error, wrong", refused, returned(RIGHT * 2), Code.VALUE),
        ("another error", raises(TypeError, "no"), RAISED, Code.ERROR),
        ("no error, not compared", raises(TypeError, "no"), returned(RIGHT), Code.ERROR),
        ("lies elsewhere", sharded("", lambda p, s: False), returned(RIGHT), Code.SHARDING),
        (
            "moves",
            noted("moved", "", lambda p, s: False),
            returned(RIGHT, moved=1),
            "collective",
        ),
        (
            "a peak",
            noted("memory", "", lambda p, s: False),
            returned(RIGHT, memory=3),
            "memory",
        ),
        (
            "a figure",
            noted("answer", "", lambda p, s: False),
            returned(RIGHT, answer=3),
            "note",
        ),
    ],
)
def test_what_does_not_hold_says_what(
    name: str, expected: Expectation, step: Step, code: str
) -> None:
    one = found(expected, step)

    assert not one.holds
    assert one.code == code
    assert one.figure == next(iter(step.extra), "")
    assert type(one.saw) is str


def test_a_mistake_by_name_is_a_wrong_value() -> None:
    expected = returns(lambda place: RIGHT, mistakes={"twice that": lambda place: RIGHT * 2})

    one = found(expected, returned(RIGHT * 2))

    assert (one.mistake, one.code) == ("twice that", Code.VALUE)
    assert "twice that" in one.saw


def test_a_missing_step_is_about_its_end() -> None:
    seen = Observation(0, "0.9.0", 1, (returned(RIGHT),), ())

    [first, second] = model.check(ONE, [seen])

    assert first.holds
    assert (second.holds, second.code) == (False, Code.ENDING)


@pytest.mark.parametrize(
    ("name", "claims", "code"),
    [
        ("warnings", {WARNINGS}, Code.WARNING),
        ("commitment", {COMMITTED}, Code.SHARDING),
        ("donation", {figure("donated deleted")}, Code.DONATION),
        ("one of several things", OUTCOME, Code.NOTE),
        ("nothing", set(), Code.NOTE),
    ],
)
def test_a_line_without_a_code_goes_by_what_was_claimed(
    name: str, claims: set[str], code: Code
) -> None:
    assert code_of(claims, returned(RIGHT), False, "as said") is code


def test_a_line_keeps_its_code_with_words_around_it() -> None:
    problem = Problem("wrong", Code.VALUE, mistake="that").framed("it is ", "!")

    assert (problem, problem.code) == ("it is wrong!", Code.VALUE)
    assert code_of({WARNINGS}, RAISED, False, problem) is Code.VALUE


def test_a_composed_expectation_keeps_the_code_of_its_part() -> None:
    assert isinstance(model, OfEachStep)
    values = model
    composed = OfEachStep("both", lambda place, step: values.check_step(place, step))

    assert found(composed, returned(np.float32([1, 3]))).code == Code.VALUE
