"""Entries as patterns of recorded fields, and the fields that match them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judged import received
from records import leaf, observation, raised, returned

from conformance.judging.seen import (
    PatternError,
    agrees,
    fault_pattern,
    shown,
    step_pattern,
    steps_of,
)
from conformance.spec.codes import Code
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault, Whereabouts


@pytest.mark.parametrize(
    ("pattern", "value", "wanted"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("a.c", "a\nc", True),
        ('^{"a": 1, "b": 2}$', {"b": 2, "a": 1}, True),
        ("^null$", None, True),
        (1, 1, True),
        (1, True, False),
        (True, 1, False),
        (1, 1.0, False),
        ([1, "a"], (1, "abc"), True),
        ([1], [1, 2], False),
        ([], [], True),
        ([], [1], False),
        ([1], "1", False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": {"b": "c"}}, {"a": {"b": "abc"}}, True),
        ({"a": 1}, [{"a": 1}, {"a": 1, "b": 2}], True),
        ({"a": 1}, [{"a": 1}, {"a": 2}], False),
        ({"a": 1}, [], False),
        ({"a": 1}, "a", False),
        ({"at_least": 2, "at_most": 3}, 2.5, True),
        ({"at_least": 2, "at_most": 3}, 3.01, False),
        ({"at_least": 2}, 1, False),
        ({"at_most": 2, "about": 1}, 1, False),
    ],
)
def test_a_pattern_mirrors_what_it_is_compared_with(pattern: Any, value: Any, wanted: bool) -> None:
    assert agrees(pattern, value) is wanted


def failing(code: Code, **other: Any) -> Finding:
    return Finding("a call", 0, False, "it", "something else", code, **other)


ERROR = raised("ValueError", "cannot  do\nthat", phase="trace")
VALUES = returned(leaf(np.array([1.0, 2.0]), weak_type=True), extra={"moved": {"bytes": 8}})


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"type": "ValueError"}, True),
        ({"type": "Value"}, False),  # a name is matched whole
        ({"type": "ValueError|TypeError", "phase": "trace"}, True),
        ({"type": "ValueError", "phase": "lower"}, False),
        ({"type": "ValueError", "message": "^cannot do that$"}, True),
        ({"type": "ValueError", "message": "cannot  do"}, False),  # in one line
        ({"type": "ValueError", "code": "value"}, False),
        ({"returned": "1", "code": "error"}, False),
    ],
)
def test_an_error_is_known_by_type_phase_and_message(table: Any, wanted: bool) -> None:
    assert agree(table, ERROR, failing(Code.ERROR)) is wanted


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"code": "value"}, True),
        ({"code": "shape"}, False),
        ({"code": ["value", "sharding"]}, False),  # all of them, and no other
        ({"code": "value", "returned": r"^float64\[2\] \[1\., 2\.\]$"}, True),
        ({"code": "value", "returned": "3"}, False),
        ({"code": "value", "leaves": {"weak_type": True, "shape": [2]}}, True),
        ({"code": "value", "leaves": {"sharding": {"devices": [0]}}}, False),
        ({"code": "value", "leaves": [{"committed": True}]}, True),
        ({"code": "value", "noted": {"moved": {"bytes": 8}}}, True),
        ({"code": "value", "noted": {"moved": {"bytes": 9}}}, False),
        ({"code": "value", "noted": {"peak": 1}}, False),
        ({"code": "value", "warnings": [], "logs": []}, True),
        ({"code": "value", "mistake": "its own rows"}, True),
        ({"code": "value", "mistake": "its own"}, False),
        ({"code": "value", "values": "right"}, False),
        ({"type": "ValueError"}, False),
    ],
)
def test_a_result_is_known_by_what_was_recorded(table: Any, wanted: bool) -> None:
    assert agree(table, VALUES, failing(Code.VALUE, mistake="its own rows")) is wanted


def agree(table: Any, record: Any, *failed: Finding) -> bool:
    (step,) = received(observation(record)).steps
    return step_pattern(table).agrees(step, failed)


def test_all_that_fails_in_a_step_must_be_named() -> None:
    both = failing(Code.VALUE), failing(Code.SHARDING)
    assert agree({"code": ["sharding", "value"]}, VALUES, *both)
    assert not agree({"code": "value"}, VALUES, *both)
    error, bases = failing(Code.ERROR), failing(Code.BASES)
    assert agree({"type": "ValueError"}, ERROR, error)
    assert not agree({"type": "ValueError"}, ERROR, error, bases)


KEPT = returned(extra={"donated deleted": [False], "buffers reused": [8, 8]})
DELETED_FIRST = {"code": "donation", "noted": {"donated deleted": [False]}}


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (DELETED_FIRST, {"donated deleted"}),
        (DELETED_FIRST | {"figure": "donated deleted"}, {"donated deleted"}),
        (DELETED_FIRST | {"figure": "donated"}, set()),  # a name is matched whole
        (
            DELETED_FIRST | {"figure": ["donated deleted", "buffers reused"]},
            {"donated deleted", "buffers reused"},
        ),
        ({"code": "donation"}, set()),  # names no figure
        ({"code": "donation", "noted": "deleted"}, set()),
    ],
)
def test_an_entry_names_each_figure_that_fails(table: Any, wanted: set[str]) -> None:
    failed = [failing(Code.DONATION, figure=key) for key in ("donated deleted", "buffers reused")]
    for some in ([failed[0]], [failed[1]], failed):
        assert agree(table, KEPT, *some) is ({one.figure for one in some} == wanted)


def test_the_figures_of_an_entry_are_keys() -> None:
    with pytest.raises(PatternError, match="figure is 8; give the key of a note"):
        step_pattern({"code": "donation", "figure": 8})


def test_two_mistakes_are_none() -> None:
    both = failing(Code.VALUE, mistake="one"), failing(Code.VALUE, mistake="another")
    assert "mistake" not in shown(None, both)


def test_a_mistake_is_known_beside_findings_that_can_have_none() -> None:
    both = failing(Code.VALUE, mistake="its own rows"), failing(Code.SHARDING)
    table = {"code": ["sharding", "value"], "mistake": "its own rows"}
    assert agree(table, VALUES, *both)
    assert not agree(table | {"mistake": "all rows"}, VALUES, *both)


def test_a_step_that_the_probe_did_not_reach_is_absent() -> None:
    absent = step_pattern({"absent": True, "code": "ending"})
    assert absent.agrees(None, [failing(Code.ENDING)])
    (step,) = received(observation(VALUES)).steps
    assert not absent.agrees(step, [failing(Code.ENDING)])


def test_of_several_steps_of_one_name_the_one_that_raised_is_compared() -> None:
    seen = received(observation(VALUES, ERROR, VALUES))
    assert steps_of([seen])[0, "a call"].raised is not None


FIRST, SECOND = "first call", "second call"
STATES = (Whereabouts(1, (), FIRST, "SIGABRT"), Whereabouts(0, (FIRST,), SECOND, None, 1))


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"kind": "crashed"}, True),
        ({"kind": "hung"}, False),
        ({"kind": "crashed", "signal": "SIGABRT", "step": FIRST, "process": 1}, True),
        ({"kind": "crashed", "signal": "SIG"}, False),
        ({"kind": "crashed", "step": SECOND}, False),
        ({"kind": "crashed", "process": 0}, False),
        ({"kind": "crashed", "exit": 1}, False),
        ({"kind": "crashed", "in_step": {FIRST: [1], SECOND: "all but the last"}}, True),
        ({"kind": "crashed", "in_step": {FIRST: "all"}}, False),
        ({"kind": "crashed", "in_step": {"third call": [0]}}, False),
    ],
)
def test_a_fault_is_known_by_what_ended_first_and_where_the_others_were(
    table: Any, wanted: bool
) -> None:
    assert fault_pattern(table).agrees(Fault("crashed", "", processes=STATES)) is wanted


def test_a_fault_of_no_known_process_has_no_signal() -> None:
    assert fault_pattern({"kind": "hung"}).agrees(Fault("hung", ""))
    assert not fault_pattern({"kind": "hung", "signal": "SIGABRT"}).agrees(Fault("hung", ""))
