"""Where an entry differs from what was observed: the differing fields, and nothing else."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from judged import received
from records import leaf, observation, raised, returned

from conformance.judging import mismatch as module
from conformance.judging.deviations import Deviation, seen_patterns
from conformance.judging.mismatch import mismatch
from conformance.judging.seen import agrees, differences
from conformance.spec.codes import Code
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import NEW_PMAP

CALL = "a call"
CASES = [
    ({"a": 1, "b": "x"}, {"a": 1, "b": "y"}, [(("b",), "x", "y", False)]),
    ({"a": {"b c": 1}}, {"a": {}}, [(("a", "b c"), 1, None, True)]),
    ([{"a": 1}, {"a": 2}], ({"a": 1}, {"a": 3}), [((1, "a"), 2, 3, False)]),
    ({"a": 1}, [{"a": 1}, {"a": 2}], [((1, "a"), 1, 2, False)]),
    ([1], [1, 2], [((), [1], [1, 2], False)]),
    ({"a": 1}, [], [((), {"a": 1}, [], False)]),
    ({"at_least": 2}, 1, [((), {"at_least": 2}, 1, False)]),
    ({"a": 1}, {"a": 1, "b": 2}, []),
]


@pytest.mark.parametrize(("pattern", "value", "wanted"), CASES)
def test_the_innermost_parts_that_differ_are_named(pattern: Any, value: Any, wanted: Any) -> None:
    found = [(d.path, d.expected, d.observed, d.missing) for d in differences(pattern, value)]
    assert found == wanted
    assert agrees(pattern, value) is (not found)


def entry(**seen: Any) -> Deviation:
    processes = seen.pop("processes", "all")
    return Deviation(
        clause=("errors.*",),
        implementation=(NEW_PMAP,),
        review=datetime.date.max,
        processes=processes,
        **seen_patterns(seen),
    )


def differs(one: Deviation, *steps: Any, code: Code = Code.VALUE, **other: Any) -> str:
    """Return the mismatch with these steps, each of which fails in process 0."""
    failed = [Finding(step["name"], 0, False, "it", "", code, **other) for step in steps]
    failed += [Finding(CALL, 1, True, "it", "it")]
    seen = [received(observation(*steps)), received(observation(returned(), process=1))]
    text = mismatch(one, failed, seen)
    assert (text == "") is one.explains(failed, seen)
    return text


def only_first(**seen: Any) -> Deviation:
    return entry(processes=(0,), **seen)


LEAF = returned(leaf([1.0, 2.0]))


def test_of_a_pattern_of_many_fields_the_differing_one_is_printed() -> None:
    saw = {"code": "value", "returned": "1[.]", "noted": {"bytes moved": 8, "host": False}}
    seen = LEAF | {"extra": {"bytes moved": 9, "host": False}}
    assert differs(only_first(saw=saw), seen) == (
        '“a call” in process 0: noted."bytes moved": expected 8, observed 9'
    )


def test_a_name_is_matched_whole_and_shown_as_it_is_written() -> None:
    saw = {"type": "Value", "message": "incompatible"}
    assert differs(only_first(saw=saw), raised(), code=Code.ERROR) == (
        "“a call” in process 0: type: expected 'Value', observed 'ValueError'"
    )


def test_what_was_not_observed_at_all_is_said() -> None:
    saw = {"code": "value", "mistake": "its own rows"}
    assert differs(only_first(saw=saw), LEAF).endswith(
        "mistake: expected 'its own rows', observed nothing"
    )


def test_a_figure_that_the_entry_leaves_out_is_named() -> None:
    saw = {"code": "donation", "noted": {"deleted": [False]}}
    seen = LEAF | {"extra": {"deleted": [False], "reused": [8]}}
    text = differs(only_first(saw=saw), seen, code=Code.DONATION, figure="reused")
    assert text.endswith('figure: expected ["deleted"], observed ["reused"]')


def test_of_several_patterns_the_nearest_is_compared() -> None:
    saw = [{"type": "KeyError"}, {"code": "value", "returned": "^int"}]
    text = differs(only_first(saw=saw), LEAF)
    assert "KeyError" not in text
    assert "returned: expected '^int'" in text


def test_processes_that_fail_beside_those_of_the_entry_are_named() -> None:
    text = differs(entry(saw={"code": "value"}), LEAF)
    assert text == "processes in which “a call” fails: expected 0, 1, observed 0"


def test_steps_that_the_entry_does_not_name_and_those_that_hold_are_named() -> None:
    one = only_first(steps={"first": {"code": "value"}})
    text = differs(one, LEAF)
    assert "“first”: expected code value, but nothing fails there" in text
    assert "“a call” fails, and the entry does not name it" in text


def test_that_saw_cannot_choose_among_steps_is_said() -> None:
    text = differs(only_first(saw={"code": "value"}), LEAF, LEAF | {"name": "another"})
    assert "by steps" in text


def test_a_fault_differs_by_its_fields() -> None:
    states = (Whereabouts(1, (), "first", "SIGABRT"), Whereabouts(0, (), "second", None))
    fault = Fault("crashed", "", processes=states)
    table = {"kind": "crashed", "signal": "SIGSEGV", "in_step": {"first": [0]}}
    assert mismatch(entry(fault=table), [], [], fault) == (
        "fault: signal: expected 'SIGSEGV', observed 'SIGABRT'; "
        "fault: in_step.first: expected [0], observed [1]"
    )
    assert mismatch(entry(fault={"kind": "crashed"}), [], [], fault) == ""
    assert "observed fault: kind crashed" in mismatch(entry(saw={"code": "value"}), [], [], fault)
    assert "observed none" in differs(entry(fault=table), LEAF)


def test_a_long_mismatch_is_cut() -> None:
    noted = {f"figure {at}": 1 for at in range(module.MOST + 3)}
    saw = {"code": "note", "noted": noted}
    text = differs(only_first(saw=saw), LEAF | {"extra": dict.fromkeys(noted, 2)}, code=Code.NOTE)
    assert text.count("expected") == module.MOST
    assert text.endswith("; and 3 more")
    long = "x" * 10_000
    short = differs(only_first(saw={"type": "X", "message": long}), raised(), code=Code.ERROR)
    assert len(short) < 1_000
