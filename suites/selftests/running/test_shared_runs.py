"""Clauses that judge one and the same run: it is made once, and each of them finds in it its own.

What is shared too far would judge one program by the outcome of another, and no cell would show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from fake_pool import FACTS, SPEC, TARGET, FakePool, cell_of, runner_on
from judged import clause_of
from records import doubled, observations, raised

from conformance.catalogue.loading import Catalogue
from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause, Timing
from conformance.spec.expectation import not_applicable, raises, returns
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Topology
from harness.clusters.cluster import Case
from harness.clusters.launchers import TargetDown
from harness.clusters.postmortem import ClusterFault, ProcessState
from harness.running import runner as running
from harness.running.cells import CellId
from harness.running.pool import Run
from harness.running.runner import Asked, Runner
from harness.targets.target import Target

VALUES = clause_of(returns(doubled), "errors.values")
ERROR = clause_of(raises(ValueError, "incompatible"), "errors.error")


class Steady:
    """A pool that answers every case with a good run of the implementation and topology."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def facts(self, target: Target, topology: Topology) -> dict[str, Any]:
        return dict(FACTS)

    def unmet(self, target: Target, topology: Topology) -> str | None:
        return None

    def run(self, target: Target, topology: Topology, case: Case, *, fresh: bool = False) -> Run:
        self.cases.append(case)
        good = observations(implementation=case.implementation, topology=topology)
        return FakePool(good).run(target, topology, case, fresh=fresh)


def run(runner: Runner, *clauses: Clause, **other: str) -> list[Cell]:
    return [runner.run(cell_of(one, **other)) for one in clauses]


def test_two_clauses_judge_one_run() -> None:
    pool = FakePool(observations())
    first, second = run(runner_on(pool, VALUES, ERROR), VALUES, ERROR)
    assert [case.clause for case, _ in pool.cases] == ["errors.values"]
    assert (first.verdict, second.verdict) == (Verdict.CONFORMS, Verdict.DEVIATES)
    assert [first.clause, second.clause] == ["errors.values", "errors.error"]
    assert first.observations == second.observations == observations()
    assert first.findings != second.findings


def test_a_run_is_named_by_the_clause_for_which_it_was_made() -> None:
    for order in ((VALUES, ERROR), (ERROR, VALUES)):
        records = run(runner_on(FakePool(observations()), VALUES, ERROR), *order)
        assert [record.run_of for record in records] == [order[0].id] * 2


def test_a_run_that_went_wrong_is_shared_as_well() -> None:
    states = (ProcessState(0, "was killed by SIGSEGV", "SIGSEGV"),)
    pool = FakePool(ClusterFault(Verdict.CRASHED, "process 0 was killed by SIGSEGV", states))
    records = run(runner_on(pool, VALUES, ERROR), VALUES, ERROR)
    assert [record.verdict for record in records] == [Verdict.CRASHED, Verdict.CRASHED]
    assert records[0].fault == records[1].fault
    assert len(pool.cases) == 1


def test_all_runs_of_a_repeated_cell_are_shared() -> None:
    pool = FakePool(
        observations(), observations(raised(name="first call"), raised(name="second call"))
    )
    records = run(runner_on(pool, VALUES, ERROR, repeat=2), VALUES, ERROR)
    assert len(pool.cases) == 2
    assert [record.verdict for record in records] == [Verdict.FLAKY, Verdict.FLAKY]
    assert [record.run_of for record in records] == [VALUES.id] * 2
    assert records[0].reason.startswith("conforms 1 of 2, deviates 1 of 2; ")


def test_a_cell_that_is_run_again_judges_the_run_that_is_kept() -> None:
    pool = FakePool(observations())
    runner = runner_on(pool, VALUES, ERROR)
    once, again = run(runner, VALUES, VALUES)
    assert once == again
    assert len(pool.cases) == 1


# What is another run
@pytest.mark.parametrize(
    ("case", "other", "implementation", "topology"),
    [
        ("implementation", {"implementation": SHARD_MAP}, SHARD_MAP, "2x2"),
        ("legacy", {"implementation": LEGACY_PMAP}, LEGACY_PMAP, "2x2"),
        ("topology", {"topology": "1x8"}, NEW_PMAP, "1x8"),
    ],
)
def test_another_is_another_run(
    case: str, other: dict[str, str], implementation: str, topology: str
) -> None:
    pool: Any = Steady()
    runner = runner_on(pool, VALUES, ERROR)
    (first,) = run(runner, VALUES)
    (second,) = run(runner, ERROR, **other)
    assert [case.implementation for case in pool.cases] == [NEW_PMAP, implementation]
    assert [first.run_of, second.run_of] == [VALUES.id, ERROR.id]
    assert len(second.observations) == Topology.parse(topology).processes


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("rows", {"rows": {"form": "zero"}, "parameters": {"form": "zero"}}),
        ("a_fresh_cluster", {"fresh": True}),
        ("a_deadline", {"deadline_s": 3.0}),
        ("what_is_selected", {"selects": True}),
    ],
)
def test_a_clause_with_another_runs_for_itself(case: str, other: dict[str, Any]) -> None:
    pool: Any = Steady()
    alone = clause_of(returns(doubled), "errors.alone", **other)
    records = run(runner_on(pool, VALUES, ERROR, alone), VALUES, alone, ERROR)
    assert [case.clause for case in pool.cases] == [VALUES.id, alone.id]
    assert [record.run_of for record in records] == [VALUES.id, alone.id, VALUES.id]


def test_another_target_is_another_run() -> None:
    pool: Any = Steady()
    targets = {spec: Asked(spec, TARGET) for spec in (SPEC, "current")}
    catalogue = Catalogue({one.id: one for one in (VALUES, ERROR)})
    runner = Runner(catalogue, (), targets, pool)
    runner.facts = {spec: dict(FACTS) for spec in targets}
    for spec in targets:
        runner.run(CellId(VALUES.id, NEW_PMAP, "2x2", spec))
    assert len(pool.cases) == 2


def test_a_clause_that_is_not_run_leaves_no_run_to_the_next() -> None:
    expect = {name: returns(doubled) for name in (LEGACY_PMAP, SHARD_MAP)}
    means_nothing = clause_of({**expect, NEW_PMAP: not_applicable("no")}, "errors.nothing")
    pool = FakePool(observations())
    records = run(runner_on(pool, means_nothing, VALUES), means_nothing, VALUES)
    assert [record.verdict for record in records] == [Verdict.NOT_APPLICABLE, Verdict.CONFORMS]
    assert records[1].run_of == VALUES.id


def test_a_target_that_was_down_is_asked_again() -> None:
    class Down(FakePool):
        def run(self, *of: Any, **options: Any) -> Run:
            if not self.cases:
                self.cases.append((of[2], False))
                raise TargetDown("python did not answer")
            return super().run(*of, **options)

    records = run(runner_on(Down(observations()), VALUES, ERROR), VALUES, ERROR)
    assert [record.verdict for record in records] == [Verdict.NOT_RUN, Verdict.DEVIATES]
    assert records[1].run_of == ERROR.id


# What is kept


def test_clauses_that_measure_time_do_not_share() -> None:
    """Each is timed for itself: a figure that is shown twice would look like two."""
    timed = [
        clause_of(returns(doubled), f"timing.{name}", timing=Timing(("call",), ()))
        for name in ("first", "second")
    ]
    pool = FakePool(observations(), observations())
    records = run(runner_on(pool, *timed), *timed)
    assert [case.clause for case, _ in pool.cases] == ["timing.first", "timing.second"]
    assert [record.run_of for record in records] == ["timing.first", "timing.second"]


def test_a_run_that_no_other_clause_judges_is_not_kept() -> None:
    pool = FakePool(observations(), observations())
    run(runner_on(pool, VALUES), VALUES, VALUES)
    assert len(pool.cases) == 2


def test_the_runs_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_KEPT", 2)
    pairs = [
        [
            clause_of(returns(doubled), f"errors.{row}-{name}", rows={"row": row})
            for name in ("first", "second")
        ]
        for row in ("a", "b", "c")
    ]
    pool: Any = Steady()
    runner = runner_on(pool, *(one for pair in pairs for one in pair))
    run(runner, *(first for first, _ in pairs))
    records = run(runner, *(second for _, second in reversed(pairs)))
    # The oldest had made room for the newest.
    assert [record.run_of for record in records] == [
        "errors.c-first",
        "errors.b-first",
        "errors.a-second",
    ]
    assert len(pool.cases) == 4
