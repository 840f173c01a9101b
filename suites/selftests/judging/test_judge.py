"""`judge`: nothing is green that was not proven, compared and found to hold, in every process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from judged import HUNG, HUNG_TEXT, STUCK, clause_of, entry, received
from records import (
    CALL,
    FIRST,
    JAX,
    SECOND,
    TOPOLOGY,
    WITNESS,
    Record,
    doubled,
    leaf,
    observation,
    observations,
    raised,
    returned,
)

from conformance.judging.deviations import Deviation
from conformance.judging.judge import PROOF, Judgement, judge
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.codes import Code, Values
from conformance.spec.expectation import (
    Finding,
    every,
    hangs,
    not_applicable,
    noted,
    raises,
    returns,
    sharded,
    steps,
)
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault, Whereabouts, all_but_the_last
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import OUTSIDE, Observation
from conformance.spec.topology import Topology

ONE = Topology(1, 2)
REFUSED = raises(ValueError, "incompatible devices")
CRASHED = Fault(Verdict.CRASHED, "process 1 was killed by SIGSEGV", ("new pmap",))


def judged(
    expect: Expectation | Clause,
    records: Sequence[Record],
    *,
    implementation: str = NEW_PMAP,
    topology: Topology = TOPOLOGY,
    jax: str = JAX,
    fault: Fault | None = None,
    deviations: Sequence[Deviation] = (),
) -> Judgement:
    clause = expect if isinstance(expect, Clause) else clause_of(expect)
    seen = [received(record) for record in records]
    return judge(clause, implementation, topology, jax, seen, fault, deviations)


def judged_once(expect: Expectation, *steps: Record) -> Judgement:
    """The judgement of one process that did `steps`."""
    return judged(expect, observations(*steps, topology=ONE), topology=ONE)


def failed(verdict: Judgement) -> list[tuple[int, str, str]]:
    """Return process, step and code of each finding that does not hold."""
    return [(f.process, f.step, f.code) for f in verdict.findings if not f.holds]


INCOMPATIBLE = {"type": "ValueError", "message": "incompatible devices"}


# What conforms


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_right_values_from_every_process_conform(implementation: str) -> None:
    verdict = judged(
        returns(doubled),
        observations(implementation=implementation),
        implementation=implementation,
    )
    assert verdict.verdict == Verdict.CONFORMS
    assert verdict.reason == "returned float32[2] [2., 4.]"
    assert all(f.holds for f in verdict.findings)
    compared = [(f.process, f.step) for f in verdict.findings if f.step != PROOF]
    assert compared == [(0, FIRST), (0, SECOND), (1, FIRST), (1, SECOND)]
    assert verdict.deviation is None


def test_each_process_is_compared_with_its_own_rows() -> None:
    rows_of_the_first = observation()["steps"]
    records = [observation(), observation(*rows_of_the_first, process=1)]
    verdict = judged(returns(doubled), records)
    assert verdict.verdict == Verdict.DEVIATES
    assert {process for process, _, _ in failed(verdict)} == {1}


# What is compared


# One process, rows [1, 2]: the model says float32 [2, 4].


@pytest.mark.parametrize(
    ("values", "dtype", "code"),
    [
        pytest.param([2, 5], "float32", Code.VALUE, id="a wrong value"),
        pytest.param([2, np.nan], "float32", Code.VALUE, id="a nan"),
        pytest.param([2, np.inf], "float32", Code.VALUE, id="an infinity"),
        pytest.param([4, 2], "float32", Code.VALUE, id="rows in another order"),
        pytest.param([2, 4, 6], "float32", Code.SHAPE, id="more rows"),
        pytest.param([[2, 4]], "float32", Code.SHAPE, id="a dimension more"),
        pytest.param([2, 4], "float64", Code.DTYPE, id="wider floats"),
        pytest.param([2, 4], "int32", Code.DTYPE, id="integers"),
    ],
)
def test_another_array_deviates(values: list[Any], dtype: str, code: Code) -> None:
    verdict = judged_once(returns(doubled), returned(np.array(values, dtype)))
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, CALL, code)]
    assert [f.expected for f in verdict.findings if not f.holds] == [returns(doubled).text]


@pytest.mark.parametrize("leaves", [0, 2])
def test_fewer_or_more_leaves_deviate(leaves: int) -> None:
    verdict = judged_once(returns(doubled), returned(*[doubled_once()] * leaves))
    assert failed(verdict) == [(0, CALL, Code.SHAPE)]


def test_every_leaf_is_compared() -> None:
    model = returns(lambda place: [doubled(place), doubled(place)])
    good = returned(doubled_once(), doubled_once())
    wrong = returned(doubled_once(), doubled_once() + 1)
    assert judged_once(model, good).verdict == Verdict.CONFORMS
    assert judged_once(model, wrong).verdict == Verdict.DEVIATES


def test_an_array_whose_values_did_not_travel_deviates() -> None:
    silent = leaf(doubled_once(), values=None, text="5000 elements")
    verdict = judged_once(returns(doubled), returned(silent))
    assert failed(verdict) == [(0, CALL, Code.SHAPE)]
    assert "5000 elements" in verdict.reason


def test_an_exception_deviates() -> None:
    verdict = judged_once(returns(doubled), raised("KeyError", "no such key", phase="trace"))
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, CALL, Code.ERROR)]
    for part in (CALL, "KeyError", "trace", "no such key"):
        assert part in verdict.reason


def test_a_nan_that_the_model_expects_conforms() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    model = returns(lambda place: values)
    assert judged_once(model, returned(values)).verdict == Verdict.CONFORMS
    flipped = values * np.array([1, -1, 1, 1], np.float32)
    assert judged_once(model, returned(flipped)).verdict == Verdict.DEVIATES


def test_rounding_is_forgiven_and_more_than_that_is_not() -> None:
    rounded = np.array([2, np.nextafter(np.float32(4), np.float32(5))], np.float32)
    assert judged_once(returns(doubled), returned(rounded)).verdict == Verdict.CONFORMS
    off = np.array([2, 4 * (1 + 1e-5)], np.float32)
    assert judged_once(returns(doubled), returned(off)).verdict == Verdict.DEVIATES


def test_a_known_mistake_is_named_and_still_deviates() -> None:
    expect = returns(doubled, mistakes={"all": lambda place: doubled(place) + 1})
    for more, mistakes in ((0, []), (1, ["all"]), (2, [""])):
        verdict = judged_once(expect, returned(doubled_once() + more))
        assert [f.mistake for f in verdict.findings if not f.holds] == mistakes
        assert verdict.verdict == (Verdict.DEVIATES if more else Verdict.CONFORMS)


def test_a_second_call_that_differs_deviates() -> None:
    second = returned(doubled_once() + 1, name=SECOND)
    verdict = judged_once(returns(doubled), returned(doubled_once(), name=FIRST), second)
    assert failed(verdict) == [(0, SECOND, Code.VALUE)]


def doubled_once() -> Any:
    return np.array([2, 4], np.float32)


@pytest.mark.parametrize("error", [ValueError, "ValueError", Exception])
def test_an_error_conforms_by_its_type_its_name_or_a_base(
    error: type[BaseException] | str,
) -> None:
    verdict = judged_once(raises(error, "incompatible devices"), raised())
    assert verdict.verdict == Verdict.CONFORMS
    assert "ValueError" in verdict.reason


def test_a_subclass_conforms() -> None:
    step = raised("ConcretizationTypeError")
    assert judged_once(raises(TypeError, "devices"), step).verdict == Verdict.CONFORMS


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(raises(TypeError, "incompatible devices"), id="another type"),
        pytest.param(raises("XlaRuntimeError", "incompatible devices"), id="a subclass only"),
        pytest.param(raises(ValueError, "compatible platforms"), id="another message"),
        pytest.param(raises(ValueError, "incompatible devices", phase="trace"), id="another phase"),
    ],
)
def test_another_error_deviates(expect: Expectation) -> None:
    assert judged_once(expect, raised()).verdict == Verdict.DEVIATES


def test_the_phase_conforms() -> None:
    expect = raises(ValueError, "incompatible devices", phase="lower")
    assert judged_once(expect, raised()).verdict == Verdict.CONFORMS
    assert judged_once(expect, raised(phase="unknown")).verdict == Verdict.DEVIATES


def test_a_pattern_spans_lines() -> None:
    expect = raises(ValueError, "first.*second")
    step = raised(message="the first line\nthe second line")
    assert judged_once(expect, step).verdict == Verdict.CONFORMS


def test_a_return_in_place_of_an_error_deviates() -> None:
    verdict = judged_once(REFUSED, returned(doubled_once()))
    assert failed(verdict) == [(0, CALL, Code.ERROR)]
    assert "float32[2] [2., 4.]" in verdict.reason


def test_a_second_call_that_returns_deviates() -> None:
    verdict = judged_once(REFUSED, raised(name=FIRST), returned(doubled_once(), name=SECOND))
    assert failed(verdict) == [(0, SECOND, Code.ERROR)]


def test_one_process_that_does_not_raise_deviates() -> None:
    verdict = judged(REFUSED, [observation(raised()), observation(process=1)])
    assert verdict.verdict == Verdict.DEVIATES
    assert {process for process, _, _ in failed(verdict)} == {1}


@pytest.mark.parametrize(
    ("values", "compared", "code"),
    [
        ([2, 4], Values.RIGHT, Code.ERROR),
        ([2, 5], Values.WRONG, Code.VALUE),
        ([2, 4, 6], Values.WRONG, Code.SHAPE),
    ],
)
def test_an_absent_error_tells_whether_the_values_were(
    values: list[Any], compared: Values, code: Code
) -> None:
    """An error that is merely absent is no wrong result; both deviate."""
    expect = raises(ValueError, "incompatible devices", otherwise=doubled)
    verdict = judged_once(expect, returned(np.array(values, np.float32)))
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, CALL, code)]
    assert [f.values for f in verdict.findings if not f.holds] == [compared]
    assert judged_once(expect, raised()).verdict == Verdict.CONFORMS
    assert judged_once(expect, raised("TypeError")).verdict == Verdict.DEVIATES


def test_a_phase_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="lowering"):
        raises(ValueError, "", phase="lowering")


def test_each_step_may_be_expected_to_differ() -> None:
    expect = steps(first_call=returns(doubled), second_call=REFUSED)
    good = returned(doubled_once(), name=FIRST), raised(name=SECOND)
    assert judged_once(expect, *good).verdict == Verdict.CONFORMS
    swapped = raised(name=FIRST), returned(doubled_once(), name=SECOND)
    assert judged_once(expect, *swapped).verdict == Verdict.DEVIATES


def test_a_step_that_never_occurred_deviates() -> None:
    expect = steps(first_call=returns(doubled), third_call=returns(doubled))
    verdict = judged_once(expect, returned(doubled_once(), name=FIRST))
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, "third call", Code.ENDING)]


def test_a_step_that_one_process_did_not_reach_deviates() -> None:
    expect = steps(first_call=returns(doubled), second_call=returns(doubled))
    both = observation()["steps"]
    short = observation(process=1)["steps"][:1]
    verdict = judged(expect, [observation(*both), observation(*short, process=1)])
    assert failed(verdict) == [(1, SECOND, Code.ENDING)]


def test_a_step_that_no_expectation_looked_at_deviates() -> None:
    expect = steps(first_call=returns(doubled))
    extra = returned(np.array([0.0]), name="after the error")
    verdict = judged_once(expect, returned(doubled_once(), name=FIRST), extra)
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, "after the error", Code.ENDING)]


def test_an_exception_outside_any_step_deviates() -> None:
    expect = steps(first_call=returns(doubled))
    outside = raised("NameError", "name 'x' is not defined", name=OUTSIDE)
    verdict = judged_once(expect, returned(doubled_once(), name=FIRST), outside)
    assert verdict.verdict == Verdict.DEVIATES
    assert failed(verdict) == [(0, OUTSIDE, Code.ERROR)]


def test_a_name_that_jax_lacks_is_known_where_an_entry_names_it_and_nothing_else_ran() -> None:
    absent = raised("AttributeError", "module 'jax' has no attribute 'set_mesh'", name=OUTSIDE)
    other = raised("AttributeError", "'Mesh' object has no attribute 'x'", name=OUTSIDE)
    pattern = {"type": "AttributeError", "message": "has no attribute"}
    known = entry(steps={OUTSIDE: pattern})
    expect = steps(first_call=returns(doubled))

    def verdict(step: Record, *entries: Deviation, **more: Any) -> str:
        record = observation(step, topology=ONE) | {"witness": []} | more
        return judged(expect, [record], topology=ONE, deviations=entries).verdict

    assert verdict(absent, known) == Verdict.KNOWN_DEVIATION
    assert verdict(absent) == Verdict.DEVIATES
    assert verdict(other, known) == Verdict.DEVIATES
    mapped = observation(absent, topology=ONE)["witness"]
    assert mapped
    assert verdict(absent, known, witness=mapped) == Verdict.DEVIATES
    assert verdict(absent, known, jax="0.0.1") == Verdict.DEVIATES
    one_of_two = observation(absent) | {"witness": []}
    assert judged(expect, [one_of_two], deviations=(known,)).verdict == Verdict.DEVIATES


def test_zero_steps_deviate() -> None:
    for expect in (returns(doubled), REFUSED, every(), steps(first_call=REFUSED)):
        verdict = judged(
            expect,
            [observation(topology=ONE) | {"steps": []}],
            topology=ONE,
        )
        assert verdict.verdict == Verdict.DEVIATES, expect.text


def test_one_process_that_did_nothing_deviates() -> None:
    for expect in (returns(doubled), sharded("anywhere", lambda place, s: True)):
        idle = observation(process=1) | {"steps": []}
        verdict = judged(expect, [observation(), idle])
        assert verdict.verdict == Verdict.DEVIATES
        assert {(process, code) for process, _, code in failed(verdict)} == {(1, Code.ENDING)}


@dataclass(frozen=True)
class OfTheFirstProcess:
    """An expectation that forgets the other processes."""

    text: str = "whatever, in process 0"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        return [Finding(s.name, 0, True, self.text, str(s)) for s in observations[0].steps]


def test_a_process_that_an_expectation_forgot_deviates() -> None:
    verdict = judged(OfTheFirstProcess(), observations())
    assert verdict.verdict == Verdict.DEVIATES
    assert {process for process, _, _ in failed(verdict)} == {1}


def test_an_expectation_that_compares_nothing_deviates() -> None:
    verdict = judged(every(), observations())
    assert verdict.verdict == Verdict.DEVIATES
    assert {code for _, _, code in failed(verdict)} == {Code.ENDING}


def test_all_of_several_expectations_must_hold() -> None:
    devices = sharded("on the first device", lambda place, s: s["devices"] == [0])
    assert judged_once(every(returns(doubled), devices), returned(doubled_once())).verdict == (
        Verdict.DEVIATES
    )
    two = sharded("on both devices", lambda place, s: s["devices"] == [0, 1])
    assert judged_once(every(returns(doubled), two), returned(doubled_once())).verdict == (
        Verdict.CONFORMS
    )


def test_a_value_that_is_no_array_has_no_sharding_to_hold() -> None:
    expect = sharded("anywhere", lambda place, s: True)
    assert judged_once(expect, returned(leaf(1.0, sharding=None))).verdict == Verdict.DEVIATES
    assert judged_once(expect, returned()).verdict == Verdict.DEVIATES
    assert judged_once(expect, raised()).verdict == Verdict.DEVIATES


def test_a_note_must_be_there_and_hold() -> None:
    expect = noted("copies", "no copy is made", lambda place, value: value == 0)
    for extra, verdict in (
        ({"copies": 0}, Verdict.CONFORMS),
        ({"copies": 1}, Verdict.DEVIATES),
        ({}, Verdict.DEVIATES),
    ):
        assert judged_once(expect, returned(doubled_once(), extra=extra)).verdict == verdict


# What is proven


def unproven(verdict: Judgement) -> list[tuple[int, str]]:
    return [(f.process, f.saw) for f in verdict.findings if f.step == PROOF and not f.holds]


def test_no_witness_deviates() -> None:
    verdict = judged(returns(doubled), observations(witness=[]))
    assert verdict.verdict == Verdict.DEVIATES
    assert unproven(verdict) == [(0, "none"), (1, "none")]


def test_a_witness_missing_in_one_process_deviates() -> None:
    verdict = judged(returns(doubled), [observation(), observation(process=1, witness=[])])
    assert unproven(verdict) == [(1, "none")]


# Written out, not taken from the judge's own table, which might say too much.
KINDS = ("legacy pmap", "new pmap", "jit(shard_map)", "shard_map", "smap", "jit", "vmap f")
OWN = {
    LEGACY_PMAP: ("legacy pmap",),
    NEW_PMAP: ("new pmap",),
    SHARD_MAP: ("jit(shard_map)", "shard_map", "smap"),
}
IMPOSTORS = [(name, kind) for name, own in OWN.items() for kind in KINDS if kind not in own]


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in OWN for kind in OWN[name]])
def test_an_implementations_own_wrappers_prove_it(name: str, kind: str) -> None:
    witness = WITNESS[name] | {"wrapper": kind}
    records = observations(implementation=name, witness=[witness])
    assert judged(returns(doubled), records, implementation=name).verdict == Verdict.CONFORMS


@pytest.mark.parametrize(("implementation", "kind"), IMPOSTORS)
def test_an_impostor_deviates_with_the_right_values(implementation: str, kind: str) -> None:
    outputs = WITNESS[implementation]["outputs"]
    records = observations(
        implementation=implementation, witness=[WITNESS[implementation] | {"wrapper": kind}]
    )
    verdict = judged(returns(doubled), records, implementation=implementation)
    assert verdict.verdict == Verdict.DEVIATES
    assert verdict.reason.startswith(f"proof: {kind} -> {outputs[0]}, traced ")


@pytest.mark.parametrize(
    ("implementation", "outputs", "proven"),
    [
        (LEGACY_PMAP, ["PmapSharding"], True),
        (LEGACY_PMAP, ["NamedSharding"], False),
        (LEGACY_PMAP, ["NamedSharding", "PmapSharding"], False),
        (NEW_PMAP, ["NamedSharding"], True),
        (NEW_PMAP, ["PmapSharding"], False),
        (NEW_PMAP, ["NamedSharding", "PmapSharding"], False),
        (SHARD_MAP, ["NamedSharding"], True),
        (SHARD_MAP, ["PmapSharding"], False),
        # NumPy's arrays are nobody's outputs. A tracer tells nothing.
        (LEGACY_PMAP, ["ndarray"], False),
        (NEW_PMAP, ["ndarray"], False),
        (SHARD_MAP, ["NamedSharding", "ndarray"], False),
        (LEGACY_PMAP, ["traced"], True),
        (NEW_PMAP, ["traced"], True),
        (SHARD_MAP, ["traced"], True),
        (LEGACY_PMAP, ["PmapSharding", "traced"], True),
        (LEGACY_PMAP, ["NamedSharding", "traced"], False),
        (NEW_PMAP, ["PmapSharding", "traced"], False),
        (LEGACY_PMAP, [], True),
        (NEW_PMAP, [], True),
    ],
)
def test_the_outputs_shardings_are_proof(
    implementation: str, outputs: list[str], proven: bool
) -> None:
    witness = WITNESS[implementation] | {"outputs": outputs}
    records = observations(implementation=implementation, witness=[witness])
    verdict = judged(returns(doubled), records, implementation=implementation)
    assert verdict.verdict == (Verdict.CONFORMS if proven else Verdict.DEVIATES)


@pytest.mark.parametrize(
    ("implementation", "traced", "raised", "proven"),
    [
        (LEGACY_PMAP, [], False, True),
        (LEGACY_PMAP, ["shard_map"], True, False),
        # Its body may hold a shard_map: its outputs say what it is.
        (LEGACY_PMAP, ["shard_map"], False, True),
        (NEW_PMAP, [], False, False),
        (NEW_PMAP, ["shard_map"], True, True),
        (SHARD_MAP, [], False, False),
        # It may have raised before anything was traced.
        (NEW_PMAP, [], True, True),
        (SHARD_MAP, [], True, True),
    ],
)
def test_what_a_call_traced_is_proof(
    implementation: str, traced: list[str], raised: bool, proven: bool
) -> None:
    """A label that a probe gives is none: NumPy called jit(shard_map) traces nothing."""
    witness = WITNESS[implementation] | {"traced": traced, "raised": raised}
    records = observations(implementation=implementation, witness=[witness])
    verdict = judged(returns(doubled), records, implementation=implementation)
    assert verdict.verdict == (Verdict.CONFORMS if proven else Verdict.DEVIATES)


@pytest.mark.parametrize("outputs", [[], ["traced"], ["NamedSharding"]])
def test_a_legacy_pmap_that_traced_a_shard_map_is_proven_by_its_outputs_alone(
    outputs: list[str],
) -> None:
    witness = WITNESS[LEGACY_PMAP] | {"traced": ["shard_map"], "outputs": outputs}
    records = observations(implementation=LEGACY_PMAP, witness=[witness])
    assert judged(returns(doubled), records, implementation=LEGACY_PMAP).verdict == Verdict.DEVIATES


def test_one_impostor_among_good_witnesses_deviates() -> None:
    mixed = [WITNESS[NEW_PMAP], WITNESS[SHARD_MAP]]
    verdict = judged(returns(doubled), observations(witness=mixed))
    assert failed(verdict) == [(0, PROOF, Code.PROOF), (1, PROOF, Code.PROOF)]
    assert "jit(shard_map)" in verdict.reason


def test_an_error_without_a_witness_deviates() -> None:
    records = observations(raised(), witness=[])
    assert judged(REFUSED, records).verdict == Verdict.DEVIATES


def test_what_a_clause_asks_for_itself_is_left_to_its_expectation() -> None:
    """Which implementation runs is the question there, but JAX and the processes are proven."""
    asks = clause_of(returns(doubled), selects=True)
    assert judged(asks, observations(witness=[])).verdict == Verdict.CONFORMS
    assert judged(asks, observations(), jax="0.9.1").verdict == Verdict.DEVIATES
    assert judged(asks, observations(processes=1)).verdict == Verdict.DEVIATES
    assert judged(asks, observations()[:1]).verdict == Verdict.DEVIATES


def test_another_jax_deviates() -> None:
    verdict = judged(returns(doubled), observations(), jax="0.9.1")
    assert verdict.verdict == Verdict.DEVIATES
    assert unproven(verdict) == [(0, "jax 0.9.0"), (1, "jax 0.9.0")]


def test_another_jax_in_one_process_deviates() -> None:
    verdict = judged(returns(doubled), [observation(), observation(process=1, jax="0.9.1")])
    assert unproven(verdict) == [(1, "jax 0.9.1")]


def test_another_number_of_processes_deviates() -> None:
    verdict = judged(returns(doubled), observations(processes=1))
    assert verdict.verdict == Verdict.DEVIATES
    assert unproven(verdict) == [(0, "1 processes"), (1, "1 processes")]


def test_an_observation_that_is_missing_deviates() -> None:
    verdict = judged(returns(doubled), [observation()])
    assert verdict.verdict == Verdict.DEVIATES
    ((_, saw),) = unproven(verdict)
    assert saw.startswith("1 observations")
    assert judged(returns(doubled), []).verdict == Verdict.DEVIATES


def test_one_process_twice_does_not_stand_for_two() -> None:
    assert judged(returns(doubled), [observation(), observation()]).verdict == Verdict.DEVIATES


# Faults


@pytest.mark.parametrize("fault", [HUNG, CRASHED], ids=lambda fault: fault.kind)
@pytest.mark.parametrize("expect", [returns(doubled), REFUSED], ids=["returns", "raises"])
def test_a_fault_is_the_verdict(expect: Expectation, fault: Fault) -> None:
    """Even where every process had observed what was expected before."""
    verdict = judged(expect, observations(), fault=fault)
    assert (verdict.verdict, verdict.reason) == (fault.kind, fault.detail)


def test_a_hang_that_is_expected_conforms() -> None:
    verdict = judged(hangs(SECOND), [], fault=HUNG)
    assert verdict.verdict == Verdict.CONFORMS
    assert verdict.reason == f"as expected: {HUNG.detail}"


@pytest.mark.parametrize("mapped", [(), ("legacy pmap",), ("legacy pmap", "new pmap")])
def test_a_hang_of_no_map_or_of_another_implementation_s_is_not_the_expected_one(
    mapped: tuple[str, ...],
) -> None:
    verdict = judged(hangs(SECOND), [], fault=Fault(Verdict.HUNG, HUNG_TEXT, mapped, STUCK))
    assert verdict.verdict == Verdict.HUNG
    assert verdict.reason.startswith("unproven")


@pytest.mark.parametrize(
    ("expect", "there", "conforms"),
    [
        (hangs(SECOND), {0: SECOND, 1: SECOND}, True),
        (hangs(SECOND), {0: SECOND, 1: FIRST}, False),
        (hangs(SECOND), {0: SECOND, 1: ""}, False),
        (hangs(SECOND), {0: SECOND}, False),
        (hangs(SECOND, all_but_the_last), {0: SECOND, 1: ""}, True),
        (hangs(SECOND, all_but_the_last), {0: SECOND, 1: SECOND}, False),
        (hangs(SECOND, all_but_the_last), {0: "", 1: SECOND}, False),
    ],
)
def test_a_hang_is_expected_in_its_step_and_processes_alone(
    expect: Expectation, there: dict[int, str], conforms: bool
) -> None:
    processes = tuple(Whereabouts(process, (), step) for process, step in there.items())
    fault = Fault(Verdict.HUNG, HUNG_TEXT, ("new pmap",), processes)
    verdict = judged(expect, [], fault=fault)
    assert verdict.verdict == (Verdict.CONFORMS if conforms else Verdict.HUNG)


@pytest.mark.parametrize("kind", [Verdict.CRASHED, Verdict.HUNG])
def test_no_entry_excuses_a_fault_before_anything_was_mapped(kind: str) -> None:
    known = entry(fault={"kind": "crashed|hung"})
    fault = Fault(kind, "process 1 was killed by SIGSEGV; no answer", ())
    assert judged(returns(doubled), [], fault=fault, deviations=[known]).verdict == kind


def test_a_crash_is_no_hang() -> None:
    verdict = judged(hangs(SECOND), [], fault=CRASHED)
    assert (verdict.verdict, verdict.reason) == (Verdict.CRASHED, CRASHED.detail)


def test_coming_back_is_no_hang() -> None:
    verdict = judged(hangs(SECOND), observations())
    assert verdict.verdict == Verdict.DEVIATES
    assert Code.ENDING in [code for _, _, code in failed(verdict)]


# Deviations


def wrong() -> list[Record]:
    return observations(returned(np.array([0, 0], np.float32)))


def test_what_an_entry_says_is_a_known_deviation() -> None:
    known = entry(saw={"code": "value", "returned": r"^float32\[2\] \[0\., 0\.\]$"})
    verdict = judged(returns(doubled), wrong(), deviations=[known])
    assert verdict.verdict == Verdict.KNOWN_DEVIATION
    assert verdict.deviation == known
    assert {(step, code) for _, step, code in failed(verdict)} == {(CALL, Code.VALUE)}
    assert verdict.reason.startswith(CALL)


def test_an_entry_must_explain_every_step_that_failed() -> None:
    records = observations(returned(np.array([0.0]), name=FIRST), raised(name=SECOND))
    shape, error = {"code": "shape"}, INCOMPATIBLE
    for known, verdict in (
        (entry(saw=error), Verdict.DEVIATES),  # of which step is not said
        (entry(steps={FIRST: shape}), Verdict.DEVIATES),
        (entry(steps={FIRST: error, SECOND: shape}), Verdict.DEVIATES),
        (entry(steps={FIRST: shape, SECOND: error}), Verdict.KNOWN_DEVIATION),
    ):
        assert judged(returns(doubled), records, deviations=[known]).verdict == verdict


def test_an_entry_must_explain_every_process_that_failed() -> None:
    known = entry(saw=INCOMPATIBLE)
    both = [observation(raised()), observation(raised(), process=1)]
    assert judged(returns(doubled), both, deviations=[known]).verdict == Verdict.KNOWN_DEVIATION
    other = observation(returned(np.array([0, 0], np.float32)), process=1)
    verdict = judged(returns(doubled), [both[0], other], deviations=[known])
    assert verdict.verdict == Verdict.DEVIATES
    assert verdict.deviation is None
    assert "in process 1: type: expected 'ValueError', observed nothing" in verdict.reason
    assert "process 0" not in verdict.reason


def test_a_step_that_fails_though_the_entry_names_another_alone_is_named() -> None:
    records = observations(raised(name=FIRST), raised(name=SECOND))
    known = entry(steps={FIRST: INCOMPATIBLE})
    verdict = judged(returns(doubled), records, deviations=[known])
    assert verdict.verdict == Verdict.DEVIATES
    assert f"“{SECOND}”" in verdict.reason
    assert f"“{FIRST}”" not in verdict.reason


def test_an_entry_does_not_cover_a_step_that_nothing_looked_at() -> None:
    expect = steps(first_call=returns(doubled))
    extra = returned(np.array([0.0]), name="after the error")
    records = observations(raised(name=FIRST), extra)
    known = entry(saw=INCOMPATIBLE)
    assert judged(expect, records, deviations=[known]).verdict == Verdict.DEVIATES


def test_an_entry_about_a_cell_that_conforms_is_stale() -> None:
    stale = entry(saw={"code": "value"})
    verdict = judged(returns(doubled), observations(), deviations=[stale])
    assert (verdict.verdict, verdict.deviation) == (Verdict.DEVIATES, None)
    assert failed(verdict) == []
    assert stale.where in verdict.reason


def test_an_entry_about_a_hang_that_is_expected_is_stale() -> None:
    verdict = judged(hangs(SECOND), [], fault=HUNG, deviations=[entry(fault={"kind": "hung"})])
    assert verdict.verdict == Verdict.DEVIATES


def test_an_entry_that_says_something_else_excuses_nothing() -> None:
    verdict = judged(returns(doubled), wrong(), deviations=[entry(saw={"type": "TypeError"})])
    assert verdict.verdict == Verdict.DEVIATES
    assert verdict.reason.endswith("type: expected 'TypeError', observed nothing")
    assert verdict.deviation is None


def test_an_entry_is_not_explained_by_what_holds() -> None:
    records = [observation(), observation(returned(np.array([0.0])), process=1)]
    known = entry(saw={"code": "value", "returned": r"^float32\[2\] \[2\., 4\.\]"})
    assert judged(returns(doubled), records, deviations=[known]).verdict == Verdict.DEVIATES


def test_an_entry_never_excuses_a_failed_proof() -> None:
    anything = entry(saw={"code": "value"})
    assert judged(returns(doubled), wrong(), deviations=[anything]).verdict == (
        Verdict.KNOWN_DEVIATION
    )
    for broken in (
        observations(*wrong()[0]["steps"], witness=[]),
        observations(*wrong()[0]["steps"], witness=[WITNESS[LEGACY_PMAP]]),
        observations(*wrong()[0]["steps"], jax="0.8.0"),
        observations(*wrong()[0]["steps"], processes=1),
        wrong()[:1],
    ):
        verdict = judged(returns(doubled), broken, deviations=[anything])
        assert verdict.verdict == Verdict.DEVIATES, broken
        assert verdict.deviation is None


@pytest.mark.parametrize("fault", [HUNG, CRASHED], ids=lambda fault: fault.kind)
def test_a_fault_is_excused_only_as_its_own_kind(fault: Fault) -> None:
    other_kind = {"kind": Verdict.HUNG if fault is CRASHED else Verdict.CRASHED}
    known = entry(fault={"kind": fault.kind})
    verdict = judged(returns(doubled), [], fault=fault, deviations=[known])
    assert verdict.verdict == Verdict.KNOWN_DEVIATION
    other = judged(returns(doubled), [], fault=fault, deviations=[entry(fault=other_kind)])
    assert other.verdict == fault.kind


# Not applicable


def test_what_is_not_applicable_is_never_judged() -> None:
    clause = clause_of({**dict.fromkeys(IMPLEMENTATIONS, REFUSED), NEW_PMAP: not_applicable("no")})
    with pytest.raises(TypeError, match="not run"):
        judged(clause, observations())
    assert clause.expect[NEW_PMAP].text == "not applicable: no"
