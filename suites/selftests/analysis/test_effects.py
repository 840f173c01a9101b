"""Effects between two recorded cells: each at least twice, and what must not be taken for one."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from digests import died, digest_of, digested
from records import Record, finding, leaf, raised, returned, step

from conformance.model.records import Finding
from reports.analysis.effects.derive import alone, derive, failing, of_failing, unlike_expected
from reports.analysis.effects.digest import Digest
from reports.analysis.effects.effect import Effect
from reports.store.older import code_of, completed

RECORDED = Path(__file__).with_name("recorded_pairs.jsonl")
PAIRS = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def recorded(clause: str, effect: str) -> dict[str, Any]:
    found = next(one for one in PAIRS if (one["clause"], one["effect"]) == (clause, effect))
    copied: dict[str, Any] = copy.deepcopy(found)
    return copied


@pytest.mark.parametrize(
    ("name", "index"),
    [(f"{one['effect']}, {one['clause']}", index) for index, one in enumerate(PAIRS)],
)
def test_a_recorded_pair_has_its_effect(name: str, index: int) -> None:
    pair = PAIRS[index]

    shown = derive(digested(pair["old"]), digested(pair["new"]))

    assert shown.effect.value == pair["effect"], f"{name}: {shown.sentence}"
    assert bool(shown.sentence) == (shown.effect is not Effect.SAME)


def test_every_effect_is_among_them() -> None:
    counted = Counter(one["effect"] for one in PAIRS)
    # Hangs and memory have one recorded pair each, and more of them are written by hand below.
    few = {"hangs", "needs more memory", "not measured"}
    few.add("other output")  # an entry of an upgrade has it, no pair of cells

    assert {e.value for e in Effect} - few <= {e for e, n in counted.items() if n > 1}


@pytest.mark.parametrize(
    ("other", "effect"),
    [(returned([1.0]), Effect.WRONG_NUMBERS), (raised("ValueError"), Effect.OTHER_ERROR)],
)
def test_a_wrong_value_is_silent_only_where_no_process_raises(
    other: dict[str, Any], effect: Effect
) -> None:
    refused, wrong = raised("TypeError"), finding("same shape, wrong values: [2.]", "value")
    seen = [
        [{"process": p, "steps": [step]} for p, step in enumerate(steps)]
        for steps in ((refused, refused), (returned([2.0]), other))
    ]
    old = digest_of(observations=seen[0])
    new = digest_of(observations=seen[1], verdict="known deviation", findings=[wrong])

    assert derive(old, new).effect is effect


@pytest.mark.parametrize(
    ("name", "index"), [(one["clause"], index) for index, one in enumerate(PAIRS)]
)
def test_nothing_changes_for_a_cell_and_itself(name: str, index: int) -> None:
    for part in ("old", "new"):
        one = PAIRS[index][part]
        assert derive(digested(one), digested(one)).effect is Effect.SAME, name


def test_a_sum_over_one_process_is_wrong_numbers_without_a_baseline() -> None:
    pair = recorded("multi_controller.map.jit.pmean", "wrong numbers")

    shown = derive(None, digested(pair["new"]))

    assert shown.effect is Effect.WRONG_NUMBERS
    assert "this process's own devices alone" in shown.sentence


def test_another_first_element_is_an_effect() -> None:
    pair = recorded("donation.peak.numpy", "same")
    of_arrays = recorded("outputs.operation.jit.sum", "other placement")
    values = of_arrays["new"]["observations"][0]["steps"][0]["value"]["leaves"][0]["values"]
    values[0] = values[0] + 1

    assert derive(digested(pair["old"]), digested(pair["new"])).effect is Effect.SAME
    shown = derive(digested(of_arrays["old"]), digested(of_arrays["new"]))
    assert shown.effect is Effect.WRONG_NUMBERS


def in_memory(kind: str) -> Record:
    """A number on one device, in this memory."""
    place = {"type": "SingleDeviceSharding", "devices": [0], "memory_kind": kind}
    return leaf([1.0], sharding=place)


@pytest.mark.parametrize(
    ("name", "old", "new", "effect"),
    [
        (
            "rounding",
            digest_of(returned([1.0, 2.0])),
            digest_of(returned([1.0, 2.000001])),
            Effect.SAME,
        ),
        (
            "more than rounding",
            digest_of(returned([1.0, 2.0])),
            digest_of(returned([1.0, 2.01])),
            "wrong numbers",
        ),
        (
            "not a number as before",
            digest_of(returned(["nan"])),
            digest_of(returned(["nan"])),
            Effect.SAME,
        ),
        (
            "not a number now",
            digest_of(returned([1.0])),
            digest_of(returned(["nan"])),
            "wrong numbers",
        ),
        (
            "another message",
            digest_of(raised("ValueError", "a")),
            digest_of(raised("ValueError", "b")),
            "same",
        ),
        (
            "another type",
            digest_of(raised("ValueError", "a")),
            digest_of(raised("KeyError", "a")),
            "other error",
        ),
        (
            "another name of one type",
            digest_of(raised("XlaRuntimeError", "a")),
            digest_of(raised("JaxRuntimeError", "a")),
            Effect.SAME,
        ),
        ("raises", digest_of(returned([1.0])), digest_of(raised("ValueError", "no")), "raises"),
        (
            "returns now",
            digest_of(raised("ValueError", "no")),
            digest_of(returned([1.0])),
            "repaired",
        ),
        (
            "returns now, though an error is expected",
            digest_of(raised("ValueError", "no")),
            digest_of(
                returned([1.0]),
                verdict="deviates",
                findings=[finding("no error", "error", error_expected=True)],
            ),
            "no longer refused",
        ),
        (
            "returns now, but calls Python functions",
            digest_of(raised("ValueError", "no")),
            digest_of(
                returned([1.0]), verdict="deviates", findings=[finding("12 functions", "note")]
            ),
            "repaired",
        ),
        (
            "returns wrong numbers now",
            digest_of(raised("ValueError", "no")),
            digest_of(
                returned([1.0]),
                verdict="deviates",
                findings=[finding("it is half", "value")],
            ),
            Effect.WRONG_NUMBERS,
        ),
        (
            "another dtype",
            digest_of(returned([1.0])),
            digest_of(returned(leaf([1.0], dtype="int32"))),
            "wrong numbers",
        ),
        (
            "another weak type",
            digest_of(returned(leaf([1.0], weak_type=True))),
            digest_of(returned(leaf([1.0], weak_type=False))),
            Effect.OTHER_OUTPUT,
        ),
        (
            "a weak type that was not recorded",
            digest_of(returned(leaf([1.0], weak_type=None))),
            digest_of(returned(leaf([1.0], weak_type=False))),
            Effect.SAME,
        ),
        (
            "the rows of all, of which this process has the same",
            digest_of(returned([1.0, 2.0])),
            digest_of(returned(leaf([1.0, 2.0], shape=[8]))),
            Effect.LIES_ELSEWHERE,
        ),
        (
            "the default memory, by its name before JAX 0.7.1 and since",
            digest_of(returned(in_memory("unpinned_host")), jax="0.7.0"),
            digest_of(returned(in_memory("device"))),
            Effect.SAME,
        ),
        (
            "the default memory, by its name since JAX 0.7.1 and before",
            digest_of(returned(in_memory("device"))),
            digest_of(returned(in_memory("unpinned_host")), jax="0.7.0"),
            Effect.SAME,
        ),
        (
            "of several memories, no longer the host's",
            digest_of(returned(in_memory("unpinned_host")), jax="0.7.1"),
            digest_of(returned(in_memory("device"))),
            Effect.LIES_ELSEWHERE,
        ),
        (
            "the memory of the host",
            digest_of(returned(in_memory("device"))),
            digest_of(returned(in_memory("unpinned_host"))),
            Effect.LIES_ELSEWHERE,
        ),
        (
            "a number of the host's that both may have",
            digest_of(returned(leaf([3.0], type="int"))),
            digest_of(returned(leaf([4.0], type="int"))),
            Effect.SAME,
        ),
        (
            "a step that one of them lacks",
            digest_of(returned([1.0])),
            digest_of(returned([1.0]), returned([2.0], name="second call")),
            Effect.SAME,
        ),
        ("crashes", digest_of(returned([1.0])), died("crashed", "SIGSEGV"), "crashes"),
        ("hangs", digest_of(returned([1.0])), died("hung"), "hangs"),
        ("hangs where it raised", digest_of(raised("ValueError", "")), died("hung"), "hangs"),
        ("hangs as before", died("hung"), died("hung"), "same"),
        ("crashes where it hung", died("hung"), died("crashed", "SIGABRT"), "crashes"),
        ("lives", died("crashed", "SIGABRT"), digest_of(returned([1.0])), "repaired"),
        (
            "what shows the error of a remedy is of its own clause",
            digest_of(returned([1.0], name="without the fix")),
            digest_of(raised("ValueError", "no", name="without the fix")),
            Effect.SAME,
        ),
    ],
)
def test_a_pair_has_its_effect(name: str, old: Digest, new: Digest, effect: str) -> None:
    shown = derive(old, new)

    assert shown.effect == effect, f"{name}: {shown}"


EXPECTED = "exit 0"  # how the test wants each process of the job to end


def job(*ends: str) -> Digest:
    """A plain job whose processes ended so."""
    steps = [returned(name=f"process {n}") | {"extra": {"text": end}} for n, end in enumerate(ends)]
    failed = [
        finding(end, "note", step=f"process {n}") for n, end in enumerate(ends) if end != EXPECTED
    ]
    return digest_of(*steps, findings=failed)


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        (job("exit 0", "exit 0"), job("SIGABRT", "exit 0"), "crashes"),
        (job("exit 0", "exit 1"), job("exit 0", "hangs"), "hangs"),
        (job("SIGABRT", "exit 0"), job("exit 1", "SIGABRT"), "same"),
        (job("hangs", "exit 0"), job("SIGABRT", "exit 0"), "crashes"),
        (job("SIGABRT", "exit 0"), job("exit 0", "exit 0"), "repaired"),
        (job("SIGABRT", "exit 0"), job("exit 1", "exit 0"), "same"),
        (job("exit 0", "exit 0"), job("exit 0", "exit 1"), "raises"),
        (job("exit 1", "exit 0"), job("exit 0", "exit 0"), "repaired"),
    ],
    ids=["killed", "hangs", "other killed", "killed not hung", "ends", "fails", "new", "fixed"],
)
def test_a_job_has_the_effect_of_how_its_processes_end(
    old: Digest, new: Digest, effect: str
) -> None:
    assert derive(old, new).effect == effect


def test_the_most_severe_effect_is_reported() -> None:
    warned = step(
        value={"leaves": [leaf([2.0])]},
        warnings=[{"category": "UserWarning", "message": "slow", "count": 1}],
    )

    assert derive(digest_of(returned([1.0])), digest_of(warned)).effect is Effect.WRONG_NUMBERS
    assert derive(digest_of(returned([2.0])), digest_of(warned)).effect is Effect.WARNS


def test_a_second_call_that_fails_says_so() -> None:
    old = digest_of(returned([1.0]), returned([1.0], name="second call"))
    new = digest_of(returned([1.0]), raised("ValueError", "on device", name="second call"))

    assert derive(old, new).second_call
    assert not derive(digest_of(returned([1.0])), digest_of(raised("ValueError", "no"))).second_call


@pytest.mark.parametrize(
    ("name", "moved", "effect"),
    [
        ("more", {"bytes": 48, "collectives": {"all-reduce": 1}}, Effect.MOVES_MORE),
        ("less", {"bytes": 0, "collectives": {}}, Effect.REPAIRED),
        ("by the host", {"bytes": 12, "collectives": {}, "host": True}, Effect.MOVES_MORE),
        ("the same", {"bytes": 12, "collectives": {"all-reduce": 1}}, Effect.SAME),
    ],
)
def test_what_is_moved(name: str, moved: dict[str, Any], effect: Effect) -> None:
    before = {"bytes": 12, "collectives": {"all-reduce": 1}}

    shown = derive(
        digest_of(step(extra={"moved": before})), digest_of(step(extra={"moved": moved}))
    )

    assert shown.effect is effect, name


@pytest.mark.parametrize(
    ("name", "extra", "effect"),
    [
        ("a higher peak", {"memory": {"what": "x", "multiple": 2.5}}, Effect.NEEDS_MORE_MEMORY),
        ("within the spread", {"memory": {"what": "x", "multiple": 1.1}}, Effect.SAME),
        ("a lower peak", {"memory": {"what": "x", "multiple": 0.5}}, Effect.REPAIRED),
    ],
)
def test_what_is_needed(name: str, extra: dict[str, Any], effect: Effect) -> None:
    old = digest_of(step(extra={"memory": {"what": "x", "multiple": 1.0}}))

    assert derive(old, digest_of(step(extra=extra))).effect is effect, name


def test_a_donated_argument_that_is_kept_needs_more_memory() -> None:
    old, new = (digest_of(step(extra={"donated deleted": [gone]})) for gone in (True, False))

    assert derive(old, new).effect is Effect.NEEDS_MORE_MEMORY
    assert derive(new, old).effect is Effect.REPAIRED


def test_without_a_baseline_only_a_hazard_is_an_effect() -> None:
    second = raised("ValueError", "no", name="second call")
    fails = finding("raised ValueError", step="second call")

    assert derive(None, digest_of(raised("ValueError", "no"))).effect is Effect.NOT_MEASURED
    assert derive(None, died("hung")).effect is Effect.HANGS
    assert alone(digest_of(returned([1.0]))) == ()
    [shown] = alone(digest_of(returned([1.0]), second, verdict="deviates", findings=[fails]))
    assert (shown.effect, shown.second_call) == (Effect.RAISES, True)


@pytest.mark.parametrize("first", ["holds", "fails"])
def test_a_second_use_that_has_to_raise_is_no_second_call_that_fails(first: str) -> None:
    """Unless the first one had to raise too: then it is accepted once, and fails afterwards."""
    second = raised("ValueError", "deleted", name="call again")
    findings = [finding("raised ValueError", "error", step="call again", error_expected=True)]
    if first == "fails":
        findings.append(finding("returned", "error", step="call", error_expected=True))
    shown = alone(
        digest_of(returned([1.0], name="call"), second, verdict="deviates", findings=findings)
    )

    assert [one.second_call for one in shown] == ([] if first == "holds" else [True])


def test_how_a_remedy_fails_is_told_of_its_own_steps() -> None:
    shows = digest_of(
        raised("ValueError", "no", name="without the fix"),
        returned([1.0]),
        verdict="deviates",
        findings=[finding("raised ValueError", "error", step="without the fix")],
    )
    fails = digest_of(
        returned([1.0]),
        verdict="deviates",
        findings=[finding("half of it", "memory")],
    )

    assert failing(shows) is None
    shown = failing(fails)
    assert shown is not None
    assert shown.effect is Effect.NEEDS_MORE_MEMORY


def test_observations_of_an_unknown_shape_are_read() -> None:
    odd = digest_of({"name": "x"}, step(extra={"moved": 3, "lies": "there", "memory": [1]}))

    assert derive(odd, odd).effect is Effect.SAME
    assert derive(digest_of(), odd).effect is Effect.SAME


@pytest.mark.parametrize(
    ("saw", "code"),
    [
        ("same shape, wrong values: [1] in place of [2]", "value"),
        ("it is half of it: same shape, wrong values: [1]", "value"),
        ("WRONG: same shape, wrong values: [1]", "value"),
        ("shape [1] in place of [2]: [1]", "shape"),
        ("dtype int32 in place of float32: [1]", "dtype"),
        ("raised ValueError (phase trace): no", "error"),
        ("no error, and the right values: returned [1]", "error"),
        ("moved = {}", ""),
    ],
)
def test_words_give_a_code_where_there_is_none(saw: str, code: str) -> None:
    assert code_of(Finding("first call", 0, False, "this", saw)) == code


@pytest.mark.parametrize(
    ("recorded", "known"),
    [("", "wrong"), ("wrong", "wrong"), ("unread", "unread"), ("right", "right")],
)
def test_that_values_are_wrong_is_a_field_and_no_text(recorded: str, known: str) -> None:
    before = "WRONG: " if known != "right" else ""
    saw = f"{before}same shape, wrong values: [1]"
    one = Finding("first call", 0, False, "raises E", saw, "value", "", recorded)
    got = completed(one)
    assert (got.saw, got.values) == ("same shape, wrong values: [1]", known)


def test_a_code_is_not_read_from_words() -> None:
    one = Finding("first call", 0, False, "this", "same shape, wrong values", "sharding")

    assert code_of(one) == "sharding"
    assert code_of(Finding("proof", 0, False, "this", "none")) == "proof"


def test_an_issue_has_the_effect_of_the_steps_that_are_not_as_expected() -> None:
    """That the step after it lies on other devices is no effect of the issue."""
    here = returned(leaf([1.0]), name="after")
    there = copy.deepcopy(here)
    there["value"]["leaves"][0]["sharding"]["devices"] = [0]
    found = [finding("no error: returned nothing", "error", expected="raises AssertionError")]
    old = digest_of(raised("AssertionError"), here)
    new = digest_of(step(), there, verdict="known deviation", findings=found)

    assert derive(old, new).effect is Effect.LIES_ELSEWHERE
    assert of_failing(old, new).effect is Effect.TAKEN
    unlike = digest_of(raised("AssertionError"), there)
    assert of_failing(old, unlike).effect is Effect.LIES_ELSEWHERE


@pytest.mark.parametrize(
    ("seen", "code", "effect"),
    [
        (step(), "error", Effect.TAKEN),
        (raised("ValueError"), "error", Effect.OTHER_ERROR),
        (raised("ValueError"), "value", Effect.RAISES),
        (returned([2.0]), "value", Effect.SAME),
    ],
)
def test_what_is_compared_with_nothing_is_compared_with_what_its_test_expects(
    seen: dict[str, Any], code: str, effect: Effect
) -> None:
    said = "raises ValueError" if code == "error" else "returns float32[8,4]"
    found = [finding("something else", code, expected=said)]

    assert unlike_expected(digest_of(seen, verdict="known deviation", findings=found)) is effect
