"""Judging where programs are only compiled: by their text, and never as if they had run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_pool import FACTS, FakePool, runner_on
from judged import clause_of, received
from records import CALL, Record, doubled, observation, raised, returned

from conformance.judging import compile_only
from conformance.judging.judge import Judgement, judge
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.aspects import VALUES
from conformance.spec.expectation import along, every, noted, raises, returns, sharded, steps
from conformance.spec.expected import Expectation
from conformance.spec.topology import Place, Topology
from harness.running.cells import CellId

ONE = Topology(1, 2)
COMPILED: Record = {
    "chip": "TPU v5 lite",
    "chips": 2,
    "libtpu": "0.0.50.1",
    "programs": 3,
    "failed": [],
    "differing": [],
}
RIGHT = returns(doubled)
REDUCES = noted("moved", "one all-reduce", lambda _, seen: seen == 1, compiled=True)
MEASURED = noted("peak", "less than two", lambda _, seen: seen < 2)
OVER_I = sharded("over i", along("i"))


def rows(**extra: Any) -> Record:
    """A step that returned its rows doubled, and noted `extra`."""
    return returned(doubled(Place(ONE, 0)), extra=extra)


def judged(expect: Expectation, *steps: Record, **compiled: Any) -> Judgement:
    """Return the judgement of one process with a good record that `compiled` changes."""
    seen = observation(*steps, topology=ONE, compiled={**COMPILED, **compiled})
    return judge(clause_of(expect), names.NEW_PMAP, ONE, "0.9.0", [received(seen)], None)


@pytest.mark.parametrize(
    ("name", "expect", "judged"),
    [
        ("what a program moves", every(RIGHT, REDUCES), True),
        ("where a result lies", every(RIGHT, OVER_I), True),
        ("in one step of several", steps(first_call=RIGHT, second_call=REDUCES), True),
        ("values", RIGHT, False),
        ("an error", raises(ValueError, "no"), False),
        ("what was measured", every(RIGHT, MEASURED), False),
    ],
)
def test_only_what_programs_say_is_judged(name: str, expect: Expectation, judged: bool) -> None:
    why = compile_only.excuse(expect)
    assert (why is None) == judged, name
    assert judged or (why or "").startswith("compiled, not run"), name


def test_a_clause_of_values_is_not_applicable_and_starts_nothing() -> None:
    pool = FakePool(facts={**FACTS, "platform": names.TPU_COMPILE})
    runner = runner_on(pool, clause_of(RIGHT))
    runner.platform = names.TPU_COMPILE
    record = runner.run(CellId("errors.sample", names.NEW_PMAP, "1x2", "jax==0.9.0"))
    assert record.verdict == Verdict.NOT_APPLICABLE
    assert record.reason.startswith("compiled, not run")
    assert pool.cases == []


def test_the_verdict_says_that_nothing_ran() -> None:
    judgement = judged(every(RIGHT, REDUCES), rows(moved=1))
    assert judgement.verdict == Verdict.CONFORMS
    for part in ("not run", "2 TPU v5 lite", "moved = 1"):
        assert part in judgement.reason


def test_findings_say_where_each_was_compared() -> None:
    judgement = judged(every(RIGHT, REDUCES, MEASURED), rows(moved=1, peak=1))
    assert [f.expected for f in judgement.findings if f.step == CALL] == [
        f"{compile_only.DRIVEN}{RIGHT.text}",
        REDUCES.text,
        f"{compile_only.LEFT_OUT}{MEASURED.text}",
    ]


@pytest.mark.parametrize(
    ("name", "step", "compiled", "says"),
    [
        ("another collective", rows(moved=2), {}, "moved = 2"),
        (
            "wrong values on the way",
            returned(np.ones(2), extra={"moved": 1}),
            {},
            "dtype float64",
        ),
        ("a program that could not be", rows(moved=1), {"failed": ["jit(f): no"]}, "no"),
        ("a result elsewhere", rows(moved=1), {"differing": ["jit(f): result 0"]}, "result 0"),
        ("fewer chips", rows(moved=1), {"chips": 1}, "for 1 chips"),
    ],
)
def test_what_is_wrong_is_seen(
    name: str, step: Record, compiled: dict[str, Any], says: str
) -> None:
    judgement = judged(every(RIGHT, REDUCES), step, **compiled)
    assert judgement.verdict == Verdict.DEVIATES, name
    assert judgement.reason.startswith("compiled for"), name
    assert says in judgement.reason, (name, judgement.reason)


@pytest.mark.parametrize(
    ("name", "step", "compiled", "says"),
    [
        ("nothing is compiled", rows(moved=2), {"programs": 0}, "no program is compiled"),
        ("an error on the way", raised("ValueError", "no"), {}, "“a call” raised"),
        (
            "what calls back",
            rows(moved=2),
            {"failed": ["jit(f): ValueError: the platform for the specified backend cpu is"]},
            "no compiling of jit(f)",
        ),
    ],
)
def test_what_cannot_be_compiled_here_is_not_applicable(
    name: str, step: Record, compiled: dict[str, Any], says: str
) -> None:
    judgement = judged(REDUCES, step, **compiled)
    assert judgement.verdict == Verdict.NOT_APPLICABLE, name
    assert judgement.reason.startswith("compiled, not run: "), name
    assert says in judgement.reason, name


def test_nothing_compiled_because_it_failed_is_no_excuse() -> None:
    judgement = judged(REDUCES, rows(moved=1), programs=0, failed=["jit(f): RuntimeError: x"])
    assert judgement.verdict == Verdict.DEVIATES


def test_each_process_has_to_compile_its_programs() -> None:
    two = Topology(2, 1)
    seen = [
        observation(
            returned(doubled(Place(two, process)), extra={"moved": 1}),
            process=process,
            topology=two,
            compiled={**COMPILED, "programs": programs},
        )
        for process, programs in enumerate((3, 0))
    ]
    clause, records = clause_of(REDUCES), [received(one) for one in seen]
    judgement = judge(clause, names.NEW_PMAP, two, "0.9.0", records, None)
    failed = [(one.process, one.saw) for one in judgement.findings if not one.holds]
    assert (judgement.verdict, failed) == (Verdict.DEVIATES, [(1, "0 programs; placed alike")])


@pytest.mark.parametrize("claims", [MEASURED.claims, MEASURED.claims | {VALUES}])
def test_what_was_measured_on_the_way_decides_nothing(claims: frozenset[str]) -> None:
    measured = replace(MEASURED, claims=claims)
    judgement = judged(every(REDUCES, measured), rows(moved=1, peak=9))
    assert judgement.verdict == Verdict.CONFORMS


def test_what_ran_is_judged_as_ever() -> None:
    seen = received(observation(rows(peak=9), topology=ONE))
    clause = clause_of(MEASURED)
    assert judge(clause, names.NEW_PMAP, ONE, "0.9.0", [seen], None).verdict == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.", True),
        ("INVALID_ARGUMENT: RESOURCE_EXHAUSTED is a word", False),
    ],
)
def test_a_device_without_memory_left_is_named_as_the_reason(message: str, named: bool) -> None:
    seen = received(observation(raised("JaxRuntimeError", message), topology=ONE))
    judgement = judge(clause_of(RIGHT), names.NEW_PMAP, ONE, "0.9.0", [seen], None)
    assert judgement.verdict == Verdict.DEVIATES
    assert judgement.reason.startswith(CALL) != named
    assert message in judgement.reason


def test_a_target_that_computes_elsewhere_is_not_run() -> None:
    runner = runner_on(FakePool(), clause_of(RIGHT))
    runner.platform = "cuda"
    record = runner.run(CellId("errors.sample", names.NEW_PMAP, "1x2", "jax==0.9.0"))
    assert record.verdict == Verdict.NOT_RUN
    assert {"cpu", "cuda"} <= set(record.reason.split())


def test_a_cluster_that_the_host_is_too_small_for_is_not_applicable() -> None:
    pool = FakePool(unmet_by="too small")
    record = runner_on(pool, clause_of(RIGHT)).run(
        CellId("errors.sample", names.NEW_PMAP, "1x2", "jax==0.9.0")
    )
    assert record.verdict == Verdict.NOT_APPLICABLE
    assert (record.reason, pool.cases) == ("too small", [])
