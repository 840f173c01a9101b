"""Strength: what a clause claims it is asked for, and what it notices is counted rightly."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import records
from judged import HUNG, clause_of, entry, received
from records import (
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

from conformance.catalogue import loading
from conformance.catalogue.loading import Catalogue
from conformance.commands.strength import strength
from conformance.model.verdicts import Verdict
from conformance.mutation.perturbing import PERTURBATIONS
from conformance.mutation.perturbing.case import Case, Seen
from conformance.mutation.perturbing.messages import Messages
from conformance.mutation.perturbing.results import _memory_kind as memory_kind
from conformance.mutation.strength import Strength, measure, prepared, sampled, trials
from conformance.spec import aspects
from conformance.spec.clause import Clause
from conformance.spec.emissions import EmissionPattern, log_record, warning
from conformance.spec.expectation import (
    OfEachStep,
    along,
    claimed,
    every,
    hangs,
    noted,
    raises,
    returns,
    sharded,
    steps,
)
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step, parse
from conformance.spec.topology import Place
from conformance.store.errors import ResultsError
from harness.commandline.main import main

RETURNS = returns(doubled)
IN_BOTH = steps(first_call=RETURNS, second_call=RETURNS)
REFUSED = raises(ValueError, "incompatible devices", phase="lower")
BOTH_REFUSED = steps(first_call=REFUSED, second_call=REFUSED)
OTHER_MESSAGE = "Received a mesh that none of the computation knows"
# Perturbations by their names, which results files have too.
NEGATED = "values: negated, in one process"
ONE_NAN = "values: one NaN, in one process"
RAISED = "exception: one where none was"
OUTSIDE_OF_IT = "step: raised outside of it"


def case(
    expect: Expectation | Clause,
    records: Sequence[Record],
    *,
    implementation: str = NEW_PMAP,
    fault: Fault | None = None,
    seen: Mapping[str, Any] | None = None,
) -> Case:
    """A recorded cell; `seen` is what its deviation entry says is seen, if it has one."""
    clause = expect if isinstance(expect, Clause) else clause_of(expect)
    saw = tuple(received(record) for record in records)
    said = (step.raised for one in saw for step in one.steps if step.raised)
    other = replace(parse(observation(raised())).steps[0].raised, message=OTHER_MESSAGE)
    entries = (entry(**seen),) if seen else ()
    messages = Messages.from_raised([*said, other])
    return Case(clause, implementation, TOPOLOGY, JAX, Seen(saw, fault), entries, messages=messages)


def tried(one: Case) -> Mapping[str, list[bool]]:
    """Return, by perturbation, whether each was noticed."""
    begun = prepared(one)
    assert begun is not None, one.judged(one.seen)
    found: dict[str, list[bool]] = defaultdict(list)
    for trial in trials(begun):
        found[trial.perturbation].append(trial.noticed)
    return found


def both(**other: Any) -> list[Record]:
    """Both processes' observations of two calls that doubled their rows; `other` of each step."""
    return [
        observation(
            *(
                returned(doubled(Place(TOPOLOGY, process)), name=name, **other)
                for name in (FIRST, SECOND)
            ),
            process=process,
        )
        for process in range(TOPOLOGY.processes)
    ]


def claiming(*claims: str, holds: Any, emits: Sequence[EmissionPattern] = ()) -> Expectation:
    """The right values, and something of a section's own besides."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        return step.raised is None and bool(holds(step)), str(step)

    own = OfEachStep("its own", check_step, (FIRST, SECOND), claims=frozenset(claims))
    return every(IN_BOTH, replace(own, emits=tuple(emits)))


def noting(value: Any, **options: Any) -> Case:
    """Both calls noted the value, and it is claimed to be so."""
    same = noted("n", "as it was", lambda _, seen: bool(seen == value), **options)
    return case(every(IN_BOTH, steps(first_call=same, second_call=same)), both(extra={"n": value}))


WARNED = [{"category": "UserWarning", "message": "donated", "count": 1}]
LOGGED = [{"logger": "jax", "level": "WARNING", "message": "donated"}]
BY_ROWS = sharded("over i", along("i"))
IN_ORDER = sharded(
    "on 0, 1", lambda _, s: s["devices"] == [0, 1], claims=frozenset({aspects.DEVICES})
)

# Each notices whatever touches what it claims.
STRONG: Mapping[str, Case] = {
    "values": case(IN_BOTH, both()),
    "shard_map": case(
        IN_BOTH,
        [one | {"witness": [WITNESS[SHARD_MAP]]} for one in both()],
        implementation=SHARD_MAP,
    ),
    "legacy": case(
        IN_BOTH,
        [one | {"witness": [WITNESS[LEGACY_PMAP]]} for one in both()],
        implementation=LEGACY_PMAP,
    ),
    "sharding": case(every(IN_BOTH, steps(first_call=BY_ROWS), steps(first_call=IN_ORDER)), both()),
    "committed": case(
        claiming(aspects.COMMITTED, holds=lambda step: step.leaves[0].committed), both()
    ),
    "weak type": case(
        claiming(aspects.WEAK_TYPE, holds=lambda step: not step.leaves[0].weak_type), both()
    ),
    "warnings": case(
        claiming(
            aspects.WARNINGS,
            holds=lambda step: len(step.warnings) == 1,
            emits=[warning("UserWarning", "donated")],
        ),
        both(warnings=WARNED),
    ),
    "logs": case(
        claiming(
            aspects.LOGS,
            holds=lambda step: len(step.logs) == 1,
            emits=[log_record("jax", "WARNING", "donated")],
        ),
        both(logs=LOGGED),
    ),
    "exception": case(BOTH_REFUSED, observations(raised(name=FIRST), raised(name=SECOND))),
    "a number": noting(8),
    "a flag": noting(True),
    "flags": noting([True, False]),
    "texts": noting(["new pmap"]),
    "a record": noting({"collectives": {"all-reduce": 1}, "bytes": 32, "host": False}),
    "programs": noting([{"collectives": [], "memory": {"temp": 4}}]),
    "an excused value": case(
        steps(first_call=raises(ValueError, "no", otherwise=doubled), second_call=RETURNS),
        both(),
        seen={"steps": {FIRST: {"code": "error", "values": "right"}}},
    ),
    "an excused error": case(
        IN_BOTH,
        observations(raised(name=FIRST), raised(name=SECOND)),
        seen={
            "steps": {
                step: {"type": "ValueError", "phase": "lower", "message": "^Received incompatible"}
                for step in (FIRST, SECOND)
            }
        },
    ),
    "a hang": case(hangs(SECOND), [], fault=HUNG),
    "an excused crash": case(
        IN_BOTH,
        [],
        fault=Fault(
            Verdict.CRASHED,
            "process 1 was killed by SIGABRT",
            ("new pmap",),
            (Whereabouts(1, (FIRST,), SECOND, "SIGABRT"), Whereabouts(0, (FIRST,), SECOND)),
        ),
        seen={
            "fault": {"kind": Verdict.CRASHED, "process": 1, "signal": "SIGABRT", "step": SECOND}
        },
    ),
}


@pytest.mark.parametrize("name", STRONG)
def test_what_is_claimed_is_noticed(name: str) -> None:
    missed = {
        perturbation for perturbation, all_of in tried(STRONG[name]).items() if not all(all_of)
    }
    assert missed == set()


def test_every_perturbation_applies_to_something() -> None:
    applied = {perturbation for one in STRONG.values() for perturbation in tried(one)}
    assert applied == {one.name for one in PERTURBATIONS}
    assert len({one.name for one in PERTURBATIONS}) == len(PERTURBATIONS)


@pytest.mark.parametrize(
    ("expect", "absent"),
    [
        (IN_BOTH, ("sharding", "figure", "warnings: more", "log records: twice")),
        (every(IN_BOTH, BY_ROWS), ("sharding: order",)),
        (noted("n", "8", lambda _, n: n == 8), ("values", "shape", "dtype", "exception: t")),
    ],
)
def test_what_is_not_claimed_is_not_asked_for(expect: Expectation, absent: Sequence[str]) -> None:
    found = tried(case(expect, both(extra={"n": 8})))
    assert [name for name in found if name.startswith(tuple(absent))] == []
    assert found


@pytest.mark.parametrize(
    ("expect", "claims"),
    [
        (RETURNS, aspects.COMPARED),
        (raises(ValueError, "x"), {aspects.EXCEPTION}),
        (raises(ValueError, "x", phase="trace"), {aspects.EXCEPTION, aspects.PHASE}),
        (raises(ValueError, "x", otherwise=doubled), aspects.COMPARED | {aspects.EXCEPTION}),
        (BY_ROWS, aspects.SHARDING),
        (IN_ORDER, {aspects.DEVICES}),
        (noted("n", "", lambda _, n: True), {aspects.figure("n"), aspects.from_below("n")}),
        (noted("n", "", lambda _, n: True, at_most=True), {aspects.figure("n")}),
        (OfEachStep("whatever it is", lambda _, step: (True, "")), aspects.OUTCOME),
        (every(RETURNS, BY_ROWS), aspects.COMPARED | aspects.SHARDING),
        (steps(first_call=RETURNS, second_call=BY_ROWS), aspects.COMPARED),
    ],
)
def test_an_expectation_claims_what_it_is_built_of(expect: Expectation, claims: set[str]) -> None:
    always = {aspects.ENDING, aspects.OCCURRENCE}
    assert claimed(expect, FIRST) == claims | always


def test_nothing_is_claimed_of_a_step_that_no_expectation_names() -> None:
    assert claimed(IN_BOTH, "another") == set()
    assert claimed(hangs(SECOND), SECOND) == set()


def test_parts_of_a_record_are_perturbed_alone() -> None:
    looks = noted("n", "few bytes", lambda _, n: n["bytes"] <= 8, parts=("bytes",), at_most=True)
    found = tried(case(every(IN_BOTH, looks), both(extra={"n": {"bytes": 8, "host": False}})))
    assert found["figure: times 1000"] == [True, True]
    assert "figure: a flag flipped" not in found
    assert "figure: zero" not in found


# What is weak


def test_an_expectation_that_always_holds_misses_what_it_claims() -> None:
    always = OfEachStep("whatever happens", lambda _, step: (True, str(step)))
    found = tried(case(always, both()))
    assert not any(found[NEGATED])
    assert not any(found[f"{RAISED}, in all"])
    assert all(found[OUTSIDE_OF_IT])


def test_a_loose_entry_misses_another_wrong_value() -> None:
    wrong = [
        observation(
            returned(np.float32([7, 7]), name=FIRST),
            returned(doubled(Place(TOPOLOGY, process)), name=SECOND),
            process=process,
        )
        for process in range(2)
    ]
    found = tried(case(IN_BOTH, wrong, seen={"steps": {FIRST: {"code": "value"}}}))
    first, second = found[ONE_NAN]
    assert (first, second) == (False, True)  # the second call is not excused at all
    exact = tried(
        case(
            IN_BOTH,
            wrong,
            seen={"steps": {FIRST: {"code": "value", "returned": r"^float32\[2\] \[7., 7.\]"}}},
        )
    )
    assert all(exact[ONE_NAN])


def test_another_message_of_jax_says_something_else() -> None:
    about = "Received incompatible devices for a computation: got argument x of f"
    near = "Received incompatible devices for a computation: got argument y of g"
    made = [replace(parse(observation(raised())).steps[0].raised, message=m) for m in (about, near)]
    assert Messages.from_raised(made).another(made[0]) is None
    other = replace(made[0], message=OTHER_MESSAGE)
    assert Messages.from_raised([*made, other]).another(made[0]) == OTHER_MESSAGE


def test_what_the_judge_cannot_read_does_not_pass() -> None:
    takes = OfEachStep("a value", lambda _, step: (step.leaves[0].local is not None, str(step)))
    found = tried(case(takes, both()))
    assert all(found[f"{RAISED}, in one process"])


def perturbed(name: str, one: Case) -> list[Seen]:
    """Return what the perturbation of this name makes of a cell."""
    [perturbation] = [p for p in PERTURBATIONS if p.name == name]
    return list(perturbation.of(one))


def test_a_fault_in_another_process_is_reported_by_that_one_first() -> None:
    [seen] = perturbed("fault: in another process", case(hangs(SECOND), [], fault=HUNG))
    assert seen.fault is not None
    assert [(one.process, one.in_step) for one in seen.fault.processes] == [(1, SECOND), (0, "")]
    assert "process 1" in seen.fault.detail


def test_a_step_of_the_only_process_is_not_missing_twice() -> None:
    """Missing in all processes is what missing in one already is."""
    alone = case(IN_BOTH, both()[:1])
    assert perturbed("step: missing, in one process", alone)
    assert not perturbed("step: missing, in all", alone)
    assert perturbed("step: missing, in all", case(IN_BOTH, both()))


@pytest.mark.parametrize("name", ["proof: a process is missing", "proof: a process twice"])
def test_the_processes_of_a_fault_are_not_counted(name: str) -> None:
    """Which observations came before a fault differs from run to run."""
    assert perturbed(name, case(IN_BOTH, both()))
    assert not perturbed(name, case(IN_BOTH, both(), fault=HUNG))


# Counting


def test_the_numbers_add_up() -> None:
    weak = OfEachStep("whatever happens", lambda _, step: (True, str(step)))
    cases = [
        case(clause_of(IN_BOTH, "errors.strong"), both()),
        case(clause_of(weak, "inputs.weak"), both()),
        case(clause_of(IN_BOTH, "errors.wrong"), observations(returned(leaf([9.0, 9.0])))),
        case(
            clause_of(IN_BOTH, "errors.excused"),
            observations(raised(name=FIRST), raised(name=SECOND)),
            seen={"steps": {FIRST: {"type": ".+"}, SECOND: {"type": ".+"}}},
        ),
    ]
    found = measure(cases)
    assert found.cells == 3
    assert found.otherwise == ["errors.wrong new_pmap 0.9.0 2x2"]
    whole = found.total()
    for parts in (
        [found.total(section=one) for one in found.sections],
        [found.total(perturbation=one) for one in found.perturbations],
        [found.total(excused=one) for one in (True, False)],
        list(found.clauses().values()),
    ):
        assert sum(one.judged for one in parts) == whole.judged
        assert sum(one.noticed for one in parts) == whole.noticed
    assert found.clauses()["errors.strong"].missed == 0
    assert sum(found.unnoticed("inputs.weak").values()) == found.clauses()["inputs.weak"].missed > 0
    in_parts = Strength()
    for one in cases:
        in_parts.join(measure([one]))
    assert in_parts == found
    assert found.sections == ["errors", "inputs"]


def test_a_sample_is_always_the_same_and_grows() -> None:
    ids = {f"errors.a{n}": f"a{n % 10}" for n in range(50)}
    backwards = dict(reversed(ids.items()))
    assert sampled(ids, 10) == sampled(backwards, 10) < sampled(ids, 20) < set(ids)


def test_a_sample_has_one_of_every_clause_before_a_second_of_any() -> None:
    ids = {f"a{n}": "often" for n in range(50)} | {"b": "once"}
    assert len(sampled(ids, 2)) == 2
    assert "b" in sampled(ids, 2)


# The command


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    weak = OfEachStep("whatever happens", lambda _, step: (True, str(step)))
    made = {
        one.id: one for one in (clause_of(IN_BOTH, "sample.strong"), clause_of(weak, "sample.weak"))
    }
    monkeypatch.setattr(loading, "load", lambda: Catalogue(made))
    facts: dict[str, Any] = {"observations": both(), "topology": str(TOPOLOGY)}
    lines = [
        records.target(JAX),
        records.cell("sample.strong", **facts),
        records.cell("sample.weak", **facts),
        records.cell("sample.gone", **facts),
        records.cell("sample.weak", "deviates", **facts),
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "ce')
    return file


def test_the_table_names_the_weak_clause(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "strength", str(results), "--examples"]) == 0
    out, err = capsys.readouterr()
    assert "1 of 2 clauses" in out
    assert "sample.weak" in out
    assert "sample.strong" not in out
    assert NEGATED in out
    assert "2 of 2 cells" in err
    assert "1 recorded clause no longer exists" in err


def test_json_holds_all_figures(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "strength", str(results), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(one["judged"] for one in found["perturbations"]) == found["judged"]
    assert [one["clause"] for one in found["clauses"]] == ["sample.weak", "sample.strong"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--fail-on", "below=0.99"], 1),
        (["--fail-on", "below=0.1"], 0),
        (["--fail-on", "below=1", "--clause", "sample.strong"], 0),
        (["--clause", "sample.none"], 2),
        (["--sample", "1"], 0),
    ],
)
def test_the_exit_status_tells_of_the_floor(results: Path, options: list[str], status: int) -> None:
    assert main(["results", "strength", str(results), *options]) == status


def test_a_file_without_what_is_asked_is_refused(results: Path) -> None:
    records = [json.loads(line) for line in results.read_text().splitlines()[:2]]
    records[1]["observations"][0]["witness"] = [{"wrapper": "new pmap", "outputs": []}]
    results.write_text("".join(json.dumps(line) + "\n" for line in records))
    with pytest.raises(ResultsError, match="another version"):
        strength([results], loading.load(), ())
    results.write_text("")
    with pytest.raises(ResultsError, match="no cell"):
        strength([results], loading.load(), ())


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("device", "pinned_host"),
        ("unpinned_host", "pinned_host"),  # the default of a CPU before 0.7.1
        ("pinned_host", "device"),
    ],
)
def test_another_memory_is_no_other_name_of_the_default_one(kind: str, other: str) -> None:
    assert memory_kind({"memory_kind": kind}) == {"memory_kind": other}
