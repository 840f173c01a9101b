"""Results files: each line fits the schema, is there at once, and can be read by `reports`.

The records are the runner's own, made on a pool without processes, so that what the harness writes
and what the schema says are held against each other.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from fake_pool import (
    FACTS,
    SPEC,
    TARGET,
    FakePool,
    cell_of,
    nodeid_of,
    record_of,
    runner_on,
)
from judged import clause_of, received
from msgspec.structs import replace
from real import catalogue
from records import Record as Json
from records import doubled, observations, raised, returned

from conformance.catalogue.causes import command, load_causes
from conformance.catalogue.claims import Claims, load_claims
from conformance.catalogue.declarations import source_text
from conformance.catalogue.identity import program_digest
from conformance.catalogue.loading import Catalogue
from conformance.judging.deviations import Deviation
from conformance.judging.seen import step_pattern
from conformance.model.codec import encode_record
from conformance.model.records import Record
from conformance.model.schema import schema
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause, processes
from conformance.spec.expectation import not_applicable, raises, returns
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP
from conformance.spec.topology import Topology
from harness.clusters.cluster import ClusterDown
from harness.clusters.launchers import TargetDown
from harness.clusters.postmortem import ClusterFault, ProcessState
from harness.plugin.hooks import _SessionHooks
from harness.plugin.options import Options
from harness.plugin.session import Session
from harness.results.recorder import Recorder
from harness.running.background import Outcome
from harness.running.cells import CellId
from harness.running.runner import Asked, Runner
from harness.targets.target import Target
from reports.store.results import load

SCHEMA = schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CLAIMS = load_claims()
GOOD = clause_of(returns(doubled))
WRONG = returned(np.array([np.nan, np.inf], np.float32), name="first call")
WRONG_ONCE = WRONG | {"name": "a call"}


def fault(kind: str) -> ClusterFault:
    states = (
        ProcessState(1, "was killed by SIGSEGV", "SIGSEGV", None, "", "about to die"),
        ProcessState(0, "exited with status 1", None, 1, "File probe.py", ""),
    )
    return ClusterFault(kind, f"process 1 {kind}", states)


def entry() -> Deviation:
    return Deviation(
        clause=("errors.*",),
        implementation=(NEW_PMAP,),
        saw=(step_pattern({"code": "value"}),),
        why="the check was removed",
        link="https://example.org/issues/1",
        kind="implementation",
        review=datetime.date(2027, 1, 31),
        jax=">=0.8",
    )


class File:
    """A results file that is being written, and what is in it so far."""

    def __init__(self, path: Path, clauses: Catalogue, claims: Claims) -> None:
        self.path = path
        self.recorder = Recorder(path, "run-1", clauses, claims)

    def records(self, kind: str = "") -> list[Json]:
        partial = self.path.with_name(f".{self.path.name}.partial")  # before the first cell
        text = (partial if partial.exists() else self.path).read_text(encoding="utf-8")
        assert text.endswith("\n")
        found = [json.loads(line) for line in text.splitlines()]
        for record in found:
            VALIDATOR.validate(record)
        return [record for record in found if kind in ("", record["kind"])]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    """A file of the clause `GOOD`, in a folder that is not there yet."""
    made = File(tmp_path / "new" / "results.jsonl", Catalogue({GOOD.id: GOOD}), CLAIMS)
    yield made
    made.recorder.close()


def write(file: File, runner: Runner, cell: CellId) -> None:
    file.recorder.cell(record_of(runner, cell), runner.facts.get(cell.target))


def only(clause: Clause, runner: Runner, implementation: str = NEW_PMAP) -> Json:
    return as_json(record_of(runner, cell_of(clause, implementation)))


def as_json(record: Record) -> Json:
    """A record as the file has it."""
    written: Json = json.loads(encode_record(record))
    VALIDATOR.validate(written)
    return written


# What stands in the file


def test_claims_and_clauses_stand_before_any_cell(tmp_path: Path) -> None:
    real = catalogue()
    file = File(tmp_path / "results.jsonl", real, CLAIMS)
    records = file.records()
    file.recorder.put()
    file.recorder.close()
    assert [r["slug"] for r in records if r["kind"] == "claim"] == list(CLAIMS.claims)
    # Those of the time lane are in no matrix.
    matrix = [id for id, clause in real.clauses.items() if clause.timing is None]
    assert [r["clause"] for r in records if r["kind"] == "clause"] == matrix
    one = next(r for r in records if r["kind"] == "clause")
    clause = real.clauses[one["clause"]]
    assert one["expected"] == {name: clause.expect[name].text for name in IMPLEMENTATIONS}
    assert {r["source"] for r in records if r["kind"] == "clause"} == {""}
    assert one["fact"] == clause.fact
    assert one["topologies"] == list(clause.topologies)
    claim = next(r for r in records if r["kind"] == "claim" and r["heading"])
    assert claim["heading_hash"].startswith("sha256:")
    assert load([file.path]).gaps() == [
        c for c in load([file.path]).claims.values() if c.slug not in claims_of(real)
    ]


def test_a_clauses_source_stands_once_before_its_first_cell(tmp_path: Path) -> None:
    other = clause_of(returns(doubled), "errors.other")
    file = File(tmp_path / "results.jsonl", Catalogue({GOOD.id: GOOD, other.id: other}), CLAIMS)
    runner = runner_on(FakePool(observations(), observations()), GOOD)
    for _ in range(2):
        write(file, runner, cell_of(GOOD))
    (cell, _), shown = file.records("cell"), file.records("clause")[2:]
    file.recorder.close()
    assert [(one["clause"], one["source"]) for one in shown] == [(GOOD.id, source_text(GOOD))]
    assert cell["program"] == program_digest(GOOD)
    found = load([file.path])
    assert {id: one.source for id, one in found.clauses.items()} == {
        GOOD.id: source_text(GOOD),
        other.id: "",
    }
    assert found.ran() == {GOOD.id}
    assert not any("differs" in note for note in found.notes)


def test_no_digest_is_computed_before_one_is_asked_for(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(clause: Clause) -> str:
        asked.append(clause.id)
        return program_digest(clause)

    monkeypatch.setattr("harness.results.recorder.program_digest", noted)
    assert set(file.recorder.programs) == {GOOD.id}
    assert asked == []
    runner = runner_on(FakePool(observations(), observations()), GOOD)
    for _ in range(2):
        write(file, runner, cell_of(GOOD))
    assert asked == [GOOD.id]


def test_causes_stand_in_the_file_and_fit_the_schema(file: File) -> None:
    records = file.records("cause")
    for record in records:
        VALIDATOR.validate(record)
    known = load_causes()
    file.recorder.put()
    assert [record["cause"] for record in records] == list(known)
    assert {slug: read.program for slug, read in load([file.path]).causes.items()} == {
        slug: one.program for slug, one in known.items()
    }
    for record in records:
        one = known[record["cause"]]
        commands = [
            {name: command(shown, name, f"{one.slug}.py") for name in shown.implementation}
            for shown in one.shows
        ]
        assert [shown["commands"] for shown in record["shows"]] == commands
        assert record["command"] == next(iter(commands[0].values()))
        assert (record["cause_kind"], record["section"]) == (one.kind, one.section)


def claims_of(clauses: Catalogue) -> set[str]:
    return {clause.claim for clause in clauses.clauses.values()}


def test_a_targets_header_stands_once_before_its_first_cell(file: File) -> None:
    runner = runner_on(FakePool(observations(), observations()), GOOD)
    for _ in range(2):
        write(file, runner, cell_of(GOOD))
    kinds = [record["kind"] for record in file.records()]
    assert kinds[-4:] == ["target", "clause", "cell", "cell"]
    assert kinds.count("target") == 1
    (header,) = file.records("target")
    assert {key: header[key] for key in ("target", "jax", "platform", "run", "unavailable")} == {
        "target": SPEC,
        "jax": FACTS["jax"],
        "platform": "cpu",
        "run": "run-1",
        "unavailable": None,
    }
    assert datetime.datetime.fromisoformat(header["started"]).tzinfo is not None


def test_each_target_has_a_header_of_its_own(file: File) -> None:
    record = record_of(runner_on(FakePool(observations()), GOOD), cell_of(GOOD))
    for spec in (SPEC, "current", SPEC):
        file.recorder.cell(replace(record, target=spec), FACTS)
    names_of = [(r["kind"], r["target"]) for r in file.records() if r["kind"] in ("target", "cell")]
    assert names_of == [
        ("target", SPEC),
        ("cell", SPEC),
        ("target", "current"),
        ("cell", "current"),
        ("cell", SPEC),
    ]


def test_a_cell_can_be_read_before_the_file_is_closed(file: File) -> None:
    runner = runner_on(FakePool(observations(), observations()), GOOD)
    for count in (1, 2):
        write(file, runner, cell_of(GOOD))
        assert len(file.records("cell")) == count


def test_a_target_that_could_not_be_had_says_why(file: File) -> None:
    runner = runner_on(FakePool(), GOOD, target=None, unavailable="no Python")
    write(file, runner, cell_of(GOOD))
    (header,) = file.records("target")
    assert header["unavailable"] == "no Python"
    assert header["jax"] is None
    (cell,) = file.records("cell")
    assert (cell["verdict"], cell["reason"]) == (Verdict.NOT_RUN, "no Python")
    (target,) = load([file.path]).targets
    assert target.unavailable == "no Python"


@pytest.mark.parametrize(
    "down",
    [TargetDown("no answer"), ClusterDown(fault(Verdict.CRASHED))],
    ids=["target", "cluster"],
)
def test_a_target_that_came_up_late_is_available(file: File, down: Exception) -> None:
    write(file, runner_on(FakePool(down=down), GOOD), cell_of(GOOD))
    write(file, runner_on(FakePool(observations()), GOOD), cell_of(GOOD, LEGACY_PMAP))
    results = load([file.path])
    (target,) = results.targets
    assert (target.jax, target.unavailable) == (FACTS["jax"], None)
    assert len(results.outcomes) == 2


# Every verdict


def test_a_cell_that_conforms_fits_the_schema() -> None:
    pool = FakePool(observations())
    record = only(GOOD, runner_on(pool, GOOD))
    assert record["verdict"] == Verdict.CONFORMS
    assert record["observations"] == observations()
    assert (record["seconds"], record["probe_seconds"], record["fresh"]) == (0.5, 0.25, False)


def test_a_cell_that_deviates_fits_the_schema() -> None:
    record = only(GOOD, runner_on(FakePool(observations(WRONG, raised(name="second call"))), GOOD))
    assert record["verdict"] == Verdict.DEVIATES
    assert [f["holds"] for f in record["findings"]].count(False) == 4
    seen = received(record["observations"][0])
    assert np.isnan(seen.steps[0].leaves[0].local[0])  # type: ignore[index]


def test_a_known_deviation_fits_the_schema() -> None:
    runner = runner_on(FakePool(observations(WRONG_ONCE)), GOOD, deviations=[entry()])
    record = only(GOOD, runner)
    assert record["verdict"] == Verdict.KNOWN_DEVIATION
    assert record["deviation"] == {
        "observed": "code value",
        "review": entry().review.isoformat(),
    } | {name: getattr(entry(), name) for name in ("why", "link", "kind", "jax")}


@pytest.mark.parametrize("kind", [Verdict.CRASHED, Verdict.HUNG])
def test_a_fault_fits_the_schema(kind: str) -> None:
    record = only(GOOD, runner_on(FakePool(fault(kind)), GOOD))
    assert (record["verdict"], record["reason"]) == (kind, f"process 1 {kind}")
    assert [p["process"] for p in record["fault"]["processes"]] == [1, 0]


@pytest.mark.parametrize("kind", [Verdict.CRASHED, Verdict.HUNG])
def test_a_cluster_that_does_not_come_up_fits_the_schema(kind: str) -> None:
    record = only(GOOD, runner_on(FakePool(down=ClusterDown(fault(kind))), GOOD))
    assert record["verdict"] == kind
    assert record["fault"]["kind"] == kind


def test_an_implementation_that_was_removed_is_not_run() -> None:
    pool = FakePool(facts={**FACTS, "implementations": [NEW_PMAP]})
    record = only(GOOD, runner_on(pool, GOOD), LEGACY_PMAP)
    assert record["verdict"] == Verdict.REMOVED
    assert {"0.9.0", LEGACY_PMAP} < set(record["reason"].split())
    assert pool.cases == []


def test_a_clause_that_asks_what_runs_is_run_without_the_implementation_too() -> None:
    pool = FakePool(observations(), facts={**FACTS, "implementations": [NEW_PMAP]})
    clause = clause_of(returns(doubled), selects=True)
    assert only(clause, runner_on(pool, clause), LEGACY_PMAP)["verdict"] == Verdict.CONFORMS


def test_a_clause_that_means_nothing_here_is_not_run() -> None:
    pool = FakePool()
    expect = dict.fromkeys(IMPLEMENTATIONS, returns(doubled)) | {NEW_PMAP: not_applicable("no")}
    clause = clause_of(expect)
    record = only(clause, runner_on(pool, clause))
    assert (record["verdict"], record["reason"]) == (Verdict.NOT_APPLICABLE, "no")
    assert pool.cases == []


def test_a_topology_that_is_too_small_is_not_run() -> None:
    pool = FakePool()
    clause = clause_of(returns(doubled), needs=processes(3))
    record = only(clause, runner_on(pool, clause))
    assert record["verdict"] == Verdict.NOT_APPLICABLE
    assert record["reason"] == processes(3).unmet(Topology(2, 2))
    assert pool.cases == []


def test_a_target_that_goes_down_is_not_run() -> None:
    record = only(GOOD, runner_on(FakePool(down=TargetDown("no answer")), GOOD))
    assert (record["verdict"], record["reason"]) == (Verdict.NOT_RUN, "no answer")


def test_a_cell_whose_verdicts_differ_is_flaky() -> None:
    pool = FakePool(observations(), observations(WRONG_ONCE), observations())
    record = only(GOOD, runner_on(pool, GOOD, repeat=3))
    assert record["verdict"] == Verdict.FLAKY
    assert record["reason"].startswith("conforms 2 of 3, deviates 1 of 3; ")
    assert not all(f["holds"] for f in record["findings"])


def test_a_cell_that_is_repeated_and_agrees_is_not_flaky() -> None:
    pool = FakePool(observations(), observations())
    assert only(GOOD, runner_on(pool, GOOD, repeat=2))["verdict"] == Verdict.CONFORMS
    assert len(pool.cases) == 2


def test_each_repetition_has_a_fresh_cluster_and_a_single_run_a_warm_one() -> None:
    for repeat in (1, 2):
        pool = FakePool(*[observations()] * repeat)
        only(GOOD, runner_on(pool, GOOD, repeat=repeat))
        assert [fresh for _, fresh in pool.cases] == [repeat > 1] * repeat


def test_a_clause_is_run_as_it_is_declared() -> None:
    clause = clause_of(raises(ValueError, "x"), fresh=True, deadline_s=3.0, parameters={"n": 1})
    pool = FakePool(observations(raised()))
    only(clause, runner_on(pool, clause))
    ((case, fresh),) = pool.cases
    assert fresh
    assert (case.clause, case.implementation, case.deadline_s) == (clause.id, NEW_PMAP, 3.0)
    assert case.parameters == {"n": 1}


def test_what_was_written_can_be_reported(file: File) -> None:
    write(file, runner_on(FakePool(observations()), GOOD), cell_of(GOOD))
    (outcome,) = load([file.path]).outcomes.values()
    assert outcome.verdict.value == Verdict.CONFORMS
    assert outcome.reason == "returned float32[2] [2., 4.]"


def test_a_number_that_json_has_not_is_refused(file: File) -> None:
    record = record_of(runner_on(FakePool(observations()), GOOD), cell_of(GOOD))
    with pytest.raises(ValueError, match="seconds is nan"):
        file.recorder.cell(replace(record, seconds=float("nan")), FACTS)


# A cell whose pytest process died


def test_a_cell_whose_pytest_process_died_is_on_record(file: File) -> None:
    cell = cell_of(GOOD, topology="4x2")
    outcome = outcome_of_crash(nodeid_of(cell))
    assert as_json(outcome.record)["verdict"] == Verdict.NOT_RUN
    assert outcome.facts is None
    file.recorder.cell(outcome.record, outcome.facts)
    write(file, runner_on(FakePool(observations()), GOOD), cell_of(GOOD))
    assert {o.verdict.value for o in load([file.path]).outcomes.values()} == {
        Verdict.NOT_RUN,
        Verdict.CONFORMS,
    }


def test_a_cell_whose_pytest_process_died_can_be_run_again() -> None:
    cell = cell_of(GOOD, topology="4x2")
    words = shlex.split(as_json(outcome_of_crash(nodeid_of(cell)).record)["reproduce"])
    assert words == ["pytest", nodeid_of(cell), "--target", SPEC, "--topology", "4x2"]


def test_another_test_whose_process_died_is_no_cell() -> None:
    assert crashed("suites/selftests/running/test_cells.py::test_b").died == {}


def crashed(nodeid: str) -> Session:
    session = Session(options(), Catalogue({GOOD.id: GOOD}), CLAIMS, ())
    _SessionHooks(session).pytest_handlecrashitem(nodeid, SimpleNamespace())
    return session


def outcome_of_crash(nodeid: str) -> Outcome:
    return crashed(nodeid).died[nodeid]


@pytest.mark.parametrize("run_again", [True, False])
def test_of_a_cell_whose_pytest_process_died_one_record_is_left(
    file: File, run_again: bool
) -> None:
    cell = cell_of(GOOD)
    session = crashed(nodeid_of(cell))
    session.recorder = file.recorder
    if run_again:
        record = record_of(runner_on(FakePool(observations()), GOOD), cell)
        report = SimpleNamespace(nodeid=nodeid_of(cell), conformance=Outcome(record, FACTS).dump())
        _SessionHooks(session).pytest_runtest_logreport(report)
    session.take_what_died()
    (outcome,) = load([file.path]).outcomes.values()
    assert session.verdicts == {outcome.verdict.value: 1}
    if run_again:
        assert outcome.verdict.value == Verdict.CONFORMS
        assert outcome.reason.startswith(f"{record.reason}; ")
    else:
        assert outcome.verdict.value == Verdict.NOT_RUN
        assert "died" in outcome.reason
        assert len(session.red) == 1


def test_a_cell_that_was_judged_before_its_process_died_keeps_its_record(file: File) -> None:
    cell = cell_of(GOOD)
    session = Session(options(), Catalogue({GOOD.id: GOOD}), CLAIMS, (), file.recorder)
    hooks = _SessionHooks(session)
    record = record_of(runner_on(FakePool(observations()), GOOD), cell)
    text = Outcome(record, FACTS).dump()
    hooks.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid_of(cell), conformance=text))
    hooks.pytest_handlecrashitem(nodeid_of(cell), SimpleNamespace())
    session.take_what_died()
    (kept,) = file.records("cell")
    assert (kept["verdict"], kept["reason"]) == (Verdict.CONFORMS, record.reason)


@pytest.mark.parametrize("excused", [False, True])
def test_what_was_not_run_is_red_unless_that_was_excused(excused: bool) -> None:
    session = Session(options(skip_missing=excused), Catalogue({GOOD.id: GOOD}), CLAIMS, ())
    unavailable = runner_on(FakePool(), GOOD, target=None, unavailable="no luck")
    session.count(unavailable.run(cell_of(GOOD)))
    assert session.verdicts == {Verdict.NOT_RUN: 1}
    assert len(session.red) == (0 if excused else 1)
    for line in session.red:
        assert {GOOD.id, NEW_PMAP, "2x2", f"{SPEC}:"} < set(line.split())
        assert line.endswith(": no luck")


def test_what_lacks_a_program_that_its_clause_asks_for_is_skipped_and_said() -> None:
    one = dataclasses.replace(GOOD, programs=("no-such-program",))
    session = Session(options(), Catalogue({one.id: one}), CLAIMS, ())
    record = runner_on(FakePool(), one).run(cell_of(one))
    assert (record.lacks, session.excuses(record)) == (("no-such-program",), True)
    session.count(record)
    assert (session.verdicts, session.red) == ({Verdict.NOT_RUN: 1}, [])


# Options on their way to the pytest workers


def options(**other: Any) -> Options:
    chosen: dict[str, Any] = {
        "targets": (Asked(SPEC, TARGET),),
        "topologies": (),
        "implementations": IMPLEMENTATIONS,
        "clauses": (),
        "platform": "cpu",
        "deadline_s": None,
        "repeat": 1,
        "isolated": False,
        "blocks": 6,
        "run": "0a1b2c3d",
    }
    return Options(**chosen | other)


@pytest.mark.parametrize(
    "given",
    [
        options(),
        options(targets=()),
        options(topologies=("1x8", "4x2"), implementations=(NEW_PMAP,), platform="cuda"),
        options(deadline_s=2.5, repeat=3, isolated=True, blocks=2, clauses=("errors.lowered",)),
        options(
            targets=(
                Asked(
                    SPEC,
                    Target(
                        SPEC,
                        Path("/my envs/é/bin/python"),
                        ("flax>=0.10", "optax"),
                        Path("/my envs/é"),
                    ),
                ),
                Asked("jax==0.12.0.1", None, "no Python"),
            )
        ),
    ],
    ids=["default", "nothing", "chosen", "numbers", "targets"],
)
def test_options_arrive_as_they_were(given: Options) -> None:
    assert Options.load(given.dump()) == given
