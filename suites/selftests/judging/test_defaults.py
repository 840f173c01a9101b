"""Requirements on every step of any clause, and the clauses that override them."""

from __future__ import annotations

import datetime
from collections import namedtuple
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judged import HUNG, clause_of, received
from records import (
    FIRST,
    SECOND,
    TOPOLOGY,
    Record,
    doubled,
    gave,
    leaf,
    observation,
    raised,
    returned,
)

from conformance.judging.defaults import check_defaults
from conformance.judging.deviations import Deviation, DeviationError, load
from conformance.judging.judge import Judgement, judge
from conformance.judging.seen import step_pattern
from conformance.model.verdicts import Verdict
from conformance.spec.arrays import WEAKLY, returns_weak
from conformance.spec.containers import Node, flattened
from conformance.spec.emissions import EmissionPattern, log_record, warning
from conformance.spec.expectation import every, hangs, in_steps, raises, returns, warns
from conformance.spec.expected import Expectation
from conformance.spec.names import NEW_PMAP
from conformance.spec.releases import by_release
from conformance.spec.topology import Place

RIGHT = returns(doubled)
WARNED = {"category": "FutureWarning", "message": "jax.pmap will change", "count": 1}
LOGGED = {"logger": "jax._src.pmap", "level": "WARNING", "message": "falls back"}
CHANGES = warning("FutureWarning", "^jax.pmap will change$")
Pair = namedtuple("Pair", ["a", "b"])


def judged(
    expect: Expectation, *steps: Record, entries: tuple[Deviation, ...] = (), **other: Any
) -> Judgement:
    """The judgement of a cell whose first process took these steps, and the other one good ones."""
    seen = [observation(*steps, **other), observation(process=1)]
    clause = clause_of(expect)
    return judge(
        clause, NEW_PMAP, TOPOLOGY, "0.9.0", [received(one) for one in seen], None, entries
    )


def twice(**other: Any) -> list[Record]:
    """Both calls of the first process; the second has what is other."""
    rows = doubled(Place(TOPOLOGY, 0))
    return [returned(rows, name=FIRST), returned(rows, name=SECOND) | other]


def entry(warns: EmissionPattern, *, optional: bool = False) -> Deviation:
    """An entry about a warning of any cell."""
    return Deviation(
        clause=("*",),
        implementation=(NEW_PMAP,),
        review=datetime.date(2030, 1, 1),
        warns=warns,
        optional=optional,
    )


@pytest.mark.parametrize("other", [{"warnings": [WARNED]}, {"logs": [LOGGED]}])
def test_what_nothing_expects_to_be_said_deviates(other: Record) -> None:
    said = judged(RIGHT, *twice(**other))
    assert said.verdict == Verdict.DEVIATES
    assert said.reason.startswith(f"{SECOND}: ")
    assert [f.code for f in said.findings if not f.holds] == ["warning"]


@pytest.mark.parametrize("what", ["warnings", "logs"])
def test_what_is_said_between_the_steps_deviates_too(what: str) -> None:
    between = {"warnings": [], "logs": []} | {what: [WARNED if what == "warnings" else LOGGED]}
    assert judged(RIGHT, between=between).verdict == Verdict.DEVIATES
    assert judged(RIGHT, between={"warnings": [], "logs": []}).verdict == Verdict.CONFORMS
    assert judged(RIGHT).verdict == Verdict.CONFORMS  # recorded before there was such a field


@pytest.mark.parametrize(
    ("known", "verdict"), [(CHANGES, Verdict.KNOWN_DEVIATION), (None, Verdict.DEVIATES)]
)
def test_a_known_warning_between_the_steps_is_no_step_of_an_entry(
    known: EmissionPattern | None, verdict: str
) -> None:
    """An entry that says what is seen in the one step stays about it."""
    wrong = Deviation(
        clause=("*",),
        implementation=(NEW_PMAP,),
        review=datetime.date(2030, 1, 1),
        saw=(step_pattern({"code": "value"}),),
    )
    entries = (wrong, *([entry(known)] if known else []))
    steps = [returned(doubled(Place(TOPOLOGY, 0)) + 1, name=FIRST)]
    seen = [
        observation(*steps, between={"warnings": [WARNED], "logs": []}),
        observation(returned(doubled(Place(TOPOLOGY, 1)) + 1, name=FIRST), process=1),
    ]
    made = [received(one) for one in seen]
    clause = clause_of(in_steps(RIGHT, FIRST))
    said = judge(clause, NEW_PMAP, TOPOLOGY, "0.9.0", made, None, entries)
    assert said.verdict == verdict, said.reason


def test_a_step_that_raises_as_expected_may_not_warn_either() -> None:
    error = in_steps(raises(ValueError, "no"), FIRST)
    expect = every(error, in_steps(RIGHT, SECOND))
    rows = doubled(Place(TOPOLOGY, 1))
    failing = [raised("ValueError", "no", name=FIRST), returned(rows, name=SECOND)]
    seen = [
        observation(failing[0], returned(doubled(Place(TOPOLOGY, 0)), name=SECOND)),
        observation(*failing, process=1),
    ]
    for warnings, verdict in (([], Verdict.CONFORMS), ([WARNED], Verdict.DEVIATES)):
        seen[1]["steps"][0]["warnings"] = warnings
        records = [received(one) for one in seen]
        found = judge(clause_of(expect), NEW_PMAP, TOPOLOGY, "0.9.0", records, None)
        assert found.verdict == verdict


def test_an_entry_knows_a_warning_and_no_other() -> None:
    known = (entry(CHANGES),)
    assert judged(RIGHT, *twice(warnings=[WARNED]), entries=known).verdict == Verdict.CONFORMS
    another = [WARNED, {**WARNED, "message": "jax.pmap will change soon"}]
    assert judged(RIGHT, *twice(warnings=another), entries=known).verdict == Verdict.DEVIATES


def test_a_warning_is_not_missed_in_a_case_that_did_not_finish() -> None:
    clause, known = clause_of(hangs(SECOND)), (entry(CHANGES),)
    said = judge(clause, NEW_PMAP, TOPOLOGY, "0.9.0", [], HUNG, known)
    assert said.verdict == Verdict.CONFORMS


def test_an_entry_whose_warning_is_gone_deviates_unless_it_is_optional() -> None:
    said = judged(RIGHT, entries=(entry(CHANGES),))
    assert (said.verdict, "but none does" in said.reason) == (Verdict.DEVIATES, True)
    assert judged(RIGHT, entries=(entry(CHANGES, optional=True),)).verdict == Verdict.CONFORMS


def test_an_entry_about_a_warning_excuses_no_wrong_values() -> None:
    wrong = [returned(np.zeros((2, 3), np.float32), name=name) for name in (FIRST, SECOND)]
    wrong[0]["warnings"] = [WARNED]
    assert judged(RIGHT, *wrong, entries=(entry(CHANGES),)).verdict == Verdict.DEVIATES


@pytest.mark.parametrize(("count", "verdict"), [(1, Verdict.CONFORMS), (2, Verdict.DEVIATES)])
def test_a_clause_may_expect_a_warning(count: int, verdict: str) -> None:
    class FutureWarningHere(FutureWarning):
        """Of the same family; the category is known by its name."""

    once = in_steps(warns(FutureWarning, "^jax.pmap will change$"), SECOND)
    steps = twice(warnings=[{**WARNED, "count": count}])
    seen = [observation(*steps, process=0), observation(process=1)]
    seen[1]["steps"][1]["warnings"] = [WARNED]
    clause = clause_of(every(RIGHT, once))
    records = [received(one) for one in seen]
    assert judge(clause, NEW_PMAP, TOPOLOGY, "0.9.0", records, None).verdict == verdict
    other = clause_of(every(RIGHT, in_steps(warns(FutureWarningHere, "will change"), SECOND)))
    assert judge(other, NEW_PMAP, TOPOLOGY, "0.9.0", records, None).verdict == Verdict.DEVIATES


def test_what_one_release_warns_of_another_may_not() -> None:
    warning_step = every(RIGHT, in_steps(warns(FutureWarning, "will change"), FIRST, SECOND))
    expect = by_release("0.9.0", before=warning_step, since=RIGHT)
    assert judged(expect, *twice(warnings=[WARNED])).verdict == Verdict.DEVIATES
    assert judged(expect).verdict == Verdict.CONFORMS


OTHERWISE = {
    "weak": {"weak_type": True},
    "uncommitted": {"committed": False},
    "in the host's memory": {
        "sharding": {
            "type": "NamedSharding",
            "spec": ["i"],
            "mesh": {"i": 2},
            "devices": [0, 1],
            "memory_kind": "pinned_host",
        }
    },
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_result_is_strong_committed_and_in_device_memory(name: str) -> None:
    rows = doubled(Place(TOPOLOGY, 0))
    steps = [returned(rows, name=FIRST), returned(leaf(rows, **OTHERWISE[name]), name=SECOND)]
    assert judged(RIGHT, *steps).verdict == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("jax", "kind", "found"),
    [
        ("0.7.0", "unpinned_host", 0),  # the one memory that a CPU's device had
        ("0.7.1", "unpinned_host", 2),
        ("0.7.0", "pinned_host", 2),
    ],
)
def test_the_default_memory_of_a_release_is_meant(jax: str, kind: str, found: int) -> None:
    sharding: Any = OTHERWISE["in the host's memory"]["sharding"]
    rows = leaf(doubled(Place(TOPOLOGY, 0)), sharding=sharding | {"memory_kind": kind})
    seen = [received(observation(returned(rows, name=FIRST), process=0))]
    seen = [replace(one, jax=jax) for one in seen * 2]
    assert len(check_defaults(RIGHT, jax, seen)) == found


OF_ALL = ("Exception", "BaseException")
CAUGHT: dict[str, tuple[str, tuple[str, ...], str]] = {
    "JAX's, as a ValueError": ("IndivisibleError", ("ValueError", *OF_ALL), Verdict.CONFORMS),
    "JAX's, as nothing": ("IndivisibleError", OF_ALL, Verdict.DEVIATES),
    "JAX's, as more": ("ShardingTypeError", ("ValueError", *OF_ALL), Verdict.DEVIATES),
    "Python's": ("KeyError", ("LookupError", *OF_ALL), Verdict.CONFORMS),
    "Python's name only": ("KeyError", OF_ALL, Verdict.DEVIATES),
    "a name and no base": ("KeyError", (), Verdict.DEVIATES),
    "a private base": (
        "ConcretizationTypeError",
        ("JAXTypeError", "_JAXErrorMixin", "TypeError", *OF_ALL),
        Verdict.CONFORMS,
    ),
    "one never seen": ("NewError", ("RuntimeError", *OF_ALL), Verdict.CONFORMS),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_an_exception_is_caught_as_its_type_is(name: str) -> None:
    type, bases, verdict = CAUGHT[name]
    expect = raises(type, "^no$")
    seen = [
        received(observation(raised(type, "no", bases=bases), process=process))
        for process in (0, 1)
    ]
    assert judge(clause_of(expect), NEW_PMAP, TOPOLOGY, "0.9.0", seen, None).verdict == verdict


def test_an_entry_that_names_the_type_does_not_explain_other_bases() -> None:
    pattern = step_pattern({"type": "IndivisibleError", "message": "^no$"})
    known = replace(entry(CHANGES), warns=None, saw=(pattern,), cause="other")
    for bases, verdict in ((None, Verdict.KNOWN_DEVIATION), (OF_ALL, Verdict.DEVIATES)):
        step = raised("IndivisibleError", "no", bases=bases)
        seen = [received(observation(step, process=process)) for process in (0, 1)]
        clause = clause_of(raises("AssertionError", "^asserts$"))
        judgement = judge(clause, NEW_PMAP, TOPOLOGY, "0.9.0", seen, None, (known,))
        assert judgement.verdict == verdict


WRONG_NUMBERS = step_pattern({"code": "value"})


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        ({}, Verdict.KNOWN_DEVIATION),
        ({"tree": "PyTreeDef([*])"}, Verdict.DEVIATES),
        ({"memory": "pinned_host"}, Verdict.DEVIATES),
    ],
)
def test_an_entry_about_wrong_values_explains_nothing_else(known: Record, verdict: str) -> None:
    numbers = doubled(Place(TOPOLOGY, 0)) + 1
    sharding = {
        "type": "NamedSharding",
        "devices": [0, 1],
        "memory_kind": known.get("memory", "device"),
    }
    record = leaf(numbers, sharding=sharding, committed=True)
    step = returned(record, tree=known.get("tree", "PyTreeDef(*)"))
    entry_of_values = replace(entry(CHANGES), warns=None, saw=(WRONG_NUMBERS,), cause="other")
    seen = [received(observation(step, process=process)) for process in (0, 1)]
    judgement = judge(
        clause_of(returns(doubled)), NEW_PMAP, TOPOLOGY, "0.9.0", seen, None, (entry_of_values,)
    )
    assert judgement.verdict == verdict


def test_an_array_on_one_device_may_be_uncommitted() -> None:
    rows = doubled(Place(TOPOLOGY, 0))
    alone = leaf(rows, committed=False, sharding={"type": "SingleDeviceSharding", "devices": [0]})
    steps = [returned(alone, name=name) for name in (FIRST, SECOND)]
    assert judged(RIGHT, *steps).verdict == Verdict.CONFORMS


@pytest.mark.parametrize(("weak", "verdict"), [(True, Verdict.CONFORMS), (False, Verdict.DEVIATES)])
def test_a_clause_may_expect_a_weak_type(weak: bool, verdict: str) -> None:
    seen = []
    for process in range(TOPOLOGY.processes):
        record = leaf(doubled(Place(TOPOLOGY, process)), weak_type=weak)
        steps = [returned(record, name=name) for name in (FIRST, SECOND)]
        seen.append(received(observation(*steps, process=process)))
    for expect in (returns_weak(doubled, lambda _: [True]), every(RIGHT, WEAKLY)):
        assert judge(clause_of(expect), NEW_PMAP, TOPOLOGY, "0.9.0", seen, None).verdict == verdict


ROWS = np.ones((2, 3), np.float32)
CONTAINERS = {
    "leaf": ROWS,
    "tuple": (ROWS, ROWS),
    "one in a tuple": (ROWS,),
    "list": [ROWS, ROWS],
    "dict": {"b": ROWS, "a": (ROWS, None)},
    "named tuple": Pair(ROWS, ROWS),
    "dataclass": Node("CustomNode(State[()], [*, *])", [ROWS, ROWS]),
    "nothing": None,
    "an empty list": [],
}


@pytest.mark.parametrize("wanted", CONTAINERS)
def test_a_model_says_in_which_container_its_leaves_come(wanted: str) -> None:
    right = [
        name
        for name, value in CONTAINERS.items()
        if returns(lambda place: CONTAINERS[wanted])
        .check(TOPOLOGY, [received(observation(gave(value)))])[0]
        .holds
    ]
    assert right == [wanted]


def test_what_did_not_record_its_container_is_not_judged_by_it() -> None:
    step = gave((ROWS, ROWS))
    del step["value"]["tree"]
    model = returns(lambda place: [ROWS, ROWS])
    assert model.check(TOPOLOGY, [received(observation(step))])[0].holds


def test_containers_read_as_jax_prints_them() -> None:
    jax = pytest.importorskip("jax")
    for name, value in CONTAINERS.items():
        if name != "dataclass":
            leaves, tree = flattened(value)
            assert (len(leaves), tree) == (
                len(jax.tree.leaves(value)),
                str(jax.tree.structure(value)),
            )


WARNS = 'warns = { category = "UserWarning", message = "^pmap" }'


@pytest.mark.parametrize(
    ("table", "text", "wrong"),
    [
        ("deviation", WARNS, "has `warns`"),
        ("warning", 'saw = { code = "value" }', "has `warns`"),
        ("warning", 'warns = { category = "UserWarning" }', "a warning has category and message"),
        ("warning", 'warns = { category = "UserWarning", message = ".*" }', "narrow it"),
        ("warning", f'{WARNS}\noptional = "yes"', "may have optional = true"),
        ("deviation", 'saw = { code = "value" }\noptional = true', "may have optional = true"),
    ],
)
def test_an_entry_that_is_none_is_refused(tmp_path: Any, table: str, text: str, wrong: str) -> None:
    file = tmp_path / "warnings.toml"
    rest = 'cause = "weak-type-lost"\nreview = 2030-01-01'
    file.write_text(f'[[{table}]]\nclause = "*"\nimplementation = "jax"\n{text}\n{rest}\n')
    with pytest.raises(DeviationError, match=wrong):
        load(file)


def test_a_log_record_is_known_by_its_logger_and_level() -> None:
    known = log_record("jax._src.pmap", "WARNING", "^falls")
    assert known.agrees(LOGGED)
    assert not known.agrees({**LOGGED, "level": "ERROR"})
    assert not known.agrees(WARNED)
