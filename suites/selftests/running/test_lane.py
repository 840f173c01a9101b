"""The time lane: who runs when, what is compared with what, and what is said of a failure."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from judged import clause_of
from msgspec.structs import replace
from processes import HANGS_S, outside_pytest

from conformance.catalogue import loading
from conformance.model.codec import encode_record
from conformance.model.records import Cell, Record, Spread
from conformance.model.schema import schema
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Timing
from harness.running import lane
from harness.running.cells import CellId
from harness.running.lane import Clock, Lane, Participant
from harness.running.runner import Runner, not_run

ROOT = Path(__file__).parents[3]
SCHEMA = schema()
OLD, NEW, THIRD = "jax==0.9.0", "jax==0.12.0.1", "jax==0.10.2"
OF_LEGACY = f"legacy pmap of {OLD}"  # as results files have it
TIMING = Timing(("index", "shard"), ("indexing.integer.zero",), baseline="shard")


def cell(implementation: str, target: str) -> CellId:
    return CellId("timing.index.4kib", implementation, "1x8", target)


def observed(**seconds: list[float]) -> dict[str, Any]:
    steps = [{"name": name, "extra": {"seconds": taken}} for name, taken in seconds.items()]
    return {"steps": steps}


class FakePool:
    def __init__(self) -> None:
        self.released = 0

    def release(self) -> None:
        self.released += 1


class FakeRunner:
    """Answers each cell from a script, and keeps the order in which it was asked."""

    def __init__(self, asked: list[CellId], verdicts: dict[CellId, list[str]]) -> None:
        self.pool = FakePool()
        self.facts: dict[str, Any] = {}
        self._asked = asked
        self._verdicts = verdicts

    def run(self, one: CellId) -> Cell:
        self._asked.append(one)
        verdict = self._verdicts.get(one, [Verdict.CONFORMS])
        seconds = [2.0, 4.0] if one.implementation == names.NEW_PMAP else [1.0, 2.0]
        return replace(
            not_run(one, "the reason"),
            verdict=verdict.pop(0) if len(verdict) > 1 else verdict[0],
            observations=[observed(index=seconds, shard=[0.5, 0.5])],
        )


def run(
    cells: list[CellId], blocks: int = 3, verdicts: dict[CellId, list[str]] | None = None
) -> tuple[dict[CellId, Participant], list[CellId]]:
    asked: list[CellId] = []
    runs = Lane(lambda: cast(Runner, FakeRunner(asked, verdicts or {})), blocks)
    return runs.run_group(cells), asked


A, B, C = (
    cell(names.LEGACY_PMAP, OLD),
    cell(names.NEW_PMAP, OLD),
    cell(names.NEW_PMAP, NEW),
)


def test_entrants_take_turns_and_each_goes_first() -> None:
    group, asked = run([A, B, C])
    assert asked == [A, B, C, B, C, A, C, A, B]
    assert list(group) == [A, B, C]
    assert group[B].blocks["index"] == [[2.0, 4.0]] * 3


def test_an_entrant_that_failed_once_is_not_measured_and_not_asked_again() -> None:
    group, asked = run([A, B], verdicts={B: [Verdict.CONFORMS, Verdict.CRASHED]})
    assert asked.count(B) == 2
    assert not group[B].measured
    assert group[A].measured
    record = lane.record(group[B], "index", TIMING, [])
    assert (record.failed, record.seconds) == ("crashed: the reason", None)
    check(record)


def test_each_target_has_a_runner_of_its_own() -> None:
    made: list[FakeRunner] = []

    def make() -> Runner:
        made.append(FakeRunner([], {}))
        return cast(Runner, made[-1])

    runs = Lane(make, 2)
    runs.run_group([A, B, C])
    assert len(made) == 2
    runs.keep([OLD])
    assert [runner.pool.released for runner in made] == [0, 1]


def test_a_heat_ends_the_clusters_of_targets_that_are_not_in_it() -> None:
    made: list[FakeRunner] = []

    def make() -> Runner:
        made.append(FakeRunner([], {}))
        return cast(Runner, made[-1])

    runs = Lane(make, 2)
    runs.run_group([A, C])
    assert [runner.pool.released for runner in made] == [0, 0]
    runs.run_group([A, B])
    assert [runner.pool.released for runner in made] == [0, 1]


def test_a_contender_is_compared_with_its_baseline_and_with_legacy_of_the_same_target() -> None:
    group, _ = run([A, B, C])
    found = lane.against("index", group[B], group.values(), TIMING)
    assert [(one.to, one.median) for one in found] == [
        ("shard", 6.0),
        (OF_LEGACY, 2.0),
    ]
    # The baseline itself is compared with legacy alone, and legacy with its baseline alone.
    assert [one.to for one in lane.against("shard", group[B], group.values(), TIMING)] == [
        OF_LEGACY
    ]
    assert [one.to for one in lane.against("index", group[A], group.values(), TIMING)] == ["shard"]


def test_a_target_without_legacy_is_compared_with_legacy_of_another() -> None:
    group, _ = run([A, B, C])
    found = lane.against("index", group[C], group.values(), TIMING)
    assert [one.to for one in found] == ["shard", OF_LEGACY]


def test_nothing_is_compared_with_a_legacy_that_failed() -> None:
    group, _ = run([A, C], verdicts={A: [Verdict.CRASHED]})
    assert [one.to for one in lane.against("index", group[C], group.values(), TIMING)] == ["shard"]


def test_a_record_fits_the_schema_and_carries_what_is_said() -> None:
    group, _ = run([A, B])
    compared = lane.against("index", group[B], group.values(), TIMING)
    record = lane.record(group[B], "index", TIMING, compared)
    check(record)
    assert record.seconds == Spread(median=3.0, low=2.0, high=4.0)
    assert record.rounds == 6
    assert record.ratios[0].says.startswith("6 times shard")


def check(record: Record) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(encode_record(record)))


def test_the_slowest_process_of_each_round_counts() -> None:
    seen = [observed(index=[1.0, 5.0]), observed(index=[3.0, 2.0])]
    assert lane.seconds_of(seen) == {"index": [3.0, 5.0]}


def test_a_heat_takes_all_targets_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "process_capacity", lambda: 16)
    cells = [cell(names.NEW_PMAP, target) for target in (OLD, NEW, THIRD)]
    assert lane.groups_of(cells, processes=4) == [cells]
    # Where there is none, the first target is in every group.
    assert lane.groups_of(cells, processes=8) == [[cells[0], cells[1]], [cells[0], cells[2]]]


def test_the_clock_goes_by_what_was_measured() -> None:
    clock = Clock()
    clock.advance(1.5)
    clock.advance(0.25)
    assert clock() == 1.75


def test_a_clause_of_the_lane_illustrates_clauses_that_exist() -> None:
    wrong = dataclasses.replace(
        clause_of({}), timing=Timing(("index",), ("indexing.no-such-clause",))
    )
    from conformance.catalogue.claims import load_claims

    with pytest.raises(loading.CatalogueError, match=r"illustrates 'indexing\.no-such-clause'"):
        loading.Catalogue({wrong.id: wrong}).check(load_claims())


def pytest_on(*arguments: str) -> subprocess.CompletedProcess[str]:
    # Without the variables of the xdist worker that runs this: they turn pytest-benchmark off.
    return subprocess.run(
        [sys.executable, "-m", "pytest", "suites/test_timing.py", "-q", *arguments],
        cwd=ROOT,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def test_the_lane_runs_only_where_it_is_asked_for() -> None:
    ran = pytest_on("--collect-only")
    assert "no tests collected" in ran.stdout
    assert "deselected" in ran.stdout


def test_the_lane_refuses_to_run_beside_other_tests() -> None:
    ran = pytest_on("-m", "benchmark", "-n", "2")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "leave out -n" in ran.stderr


def test_a_ratio_needs_more_than_one_block() -> None:
    ran = pytest_on("-m", "benchmark", "--blocks", "1")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--blocks: '1'" in ran.stderr


@pytest.mark.long
def test_a_measured_heat_reaches_pytest_benchmark_and_the_results_file(tmp_path: Path) -> None:
    """The whole way: workers, blocks, the clock, --benchmark-json and the results."""
    figures, results = tmp_path / "figures.json", tmp_path / "results.jsonl"
    ran = pytest_on(
        *("-m", "benchmark", "-k", "timing.top-level.one"),
        *(
            "--implementation",
            "new_pmap",
            "--blocks",
            "2",
            f"--benchmark-json={figures}",
            f"--results={results}",
        ),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = {
        one["extra_info"] and one["name"]: one
        for one in json.loads(figures.read_text())["benchmarks"]
    }
    records = [json.loads(line) for line in results.read_text().splitlines()]
    timings = {r["contender"]: r for r in records if r["kind"] == "timing"}
    assert set(timings) == {"top level", "under jit"}
    assert not [r for r in records if r["kind"] == "cell"]
    for contender, record in timings.items():
        name = next(n for n in told if contender.replace(" ", "_") in n)
        assert told[name]["stats"]["rounds"] == record["rounds"] == 40
        assert told[name]["stats"]["median"] == pytest.approx(record["seconds"]["median"])
        assert told[name]["extra_info"]["ratios"] == [one["says"] for one in record["ratios"]]
