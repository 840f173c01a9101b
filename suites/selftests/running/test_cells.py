"""Cells: their ids, which of them a run has and in which order, and what a failing one says."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from fake_pool import SPEC, FakePool, cell_of, nodeid_of, record_of, runner_on
from judged import clause_of, received
from records import SECOND, doubled, observation, observations, raised, returned

from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue, load
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Timing
from conformance.spec.expectation import raises, returns
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from harness.clusters.postmortem import ClusterFault, ProcessState
from harness.plugin.message import MOST_LOG_LINES, MOST_STACK_LINES, failure, odd_first, reproduce
from harness.running.cells import CellId, chunks_for, group, parse_nodeid, select

CLAIMS = load_claims()
WRONG = np.array([0, 0], np.float32)


@pytest.mark.parametrize(
    ("case", "target"),
    [
        ("a_version", "jax==0.9.0"),
        ("a_version_of_four_parts", "jax==0.12.0.1"),
        ("this_environment", "current"),
        ("a_path", "/envs/jax/bin/python"),
        ("a_path_with_hyphens", "/envs/my-jax-0.9/bin/python3.12-dbg"),
        ("a_path_with_a_space", "/my envs/bin/python"),
        ("a_path_with_brackets", "/envs/[old]/bin/python"),
        ("a_path_with_colons", "/envs/a::b/bin/python"),
        ("a_path_like_a_topology", "/envs/a-1x8-b/python"),
        ("a_path_like_another_cell", "/envs/a-shard_map-4x2-b/python"),
    ],
)
def test_names_the_cell(case: str, target: str) -> None:
    for implementation in IMPLEMENTATIONS:
        cell = CellId("errors.other-device.two", implementation, "4x2", target)
        assert parse_nodeid(f"suites/test_errors.py::test_errors[{cell}]") == cell


@pytest.mark.parametrize(
    "nodeid",
    [
        "suites/selftests/running/test_cells.py::test_plain",
        "suites/selftests/running/test_cells.py::test_plain[jax==0.9.0]",
        "suites/selftests/running/test_cells.py::test_plain[new_pmap-1x8]",
        "suites/selftests/running/test_cells.py::test_plain[errors.a-pmap-1x8-current]",
        "suites/selftests/running/test_cells.py::test_plain[errors.a-new_pmap-8-current]",
    ],
)
def test_of_another_test_names_none(nodeid: str) -> None:
    assert parse_nodeid(nodeid) is None


# Which cells


FIRST = clause_of(returns(doubled), "errors.b", topologies=("1x8", "4x2"))
OTHER = clause_of(returns(doubled), "errors.a", topologies=("1x8",))
ELSEWHERE = clause_of(returns(doubled), "inputs.a", topologies=("2x2",))
CATALOGUE = Catalogue({one.id: one for one in (FIRST, OTHER, ELSEWHERE)})


def test_the_cells_of_a_section_are_selected_by_target_and_topology() -> None:
    found = select(CATALOGUE, "errors", IMPLEMENTATIONS, ["jax==0.9.0", "current"])
    assert len(found) == len(set(found)) == 2 * 3 * 3
    assert {cell.clause for cell in found} == {"errors.a", "errors.b"}
    places = list(dict.fromkeys((cell.target, cell.topology) for cell in found))
    # In the order of the targets as they were asked for, and each cluster's cells together.
    assert places == [
        ("jax==0.9.0", "1x8"),
        ("jax==0.9.0", "4x2"),
        ("current", "1x8"),
        ("current", "4x2"),
    ]


def test_a_clauses_implementations_stand_together() -> None:
    found = select(CATALOGUE, "errors", IMPLEMENTATIONS, ["current"])
    assert [(cell.clause, cell.implementation) for cell in found[:6]] == [
        *(("errors.b", name) for name in IMPLEMENTATIONS),
        *(("errors.a", name) for name in IMPLEMENTATIONS),
    ]


def test_a_selection_is_the_same_each_time() -> None:
    """Every xdist worker collects for itself."""
    some = [select(CATALOGUE, "errors", IMPLEMENTATIONS, ["jax==0.9.0"]) for _ in range(2)]
    assert some[0] == some[1]


def test_implementations_that_were_not_asked_for_are_left_out() -> None:
    found = select(CATALOGUE, "errors", [SHARD_MAP], ["current"])
    assert {cell.implementation for cell in found} == {SHARD_MAP}
    assert len(found) == 3


def test_topologies_that_are_named_replace_the_clauses_own() -> None:
    found = select(CATALOGUE, "errors", [NEW_PMAP], ["current"], ["2x2"])
    assert [(cell.clause, cell.topology) for cell in found] == [
        ("errors.b", "2x2"),
        ("errors.a", "2x2"),
    ]


def test_a_section_without_clauses_has_no_cells() -> None:
    assert select(CATALOGUE, "donation", IMPLEMENTATIONS, ["current"]) == []
    assert select(CATALOGUE, "error", IMPLEMENTATIONS, ["current"]) == []


# Which cells stay together


def nodeid(clause: str, topology: str = "1x8", target: str = "current") -> str:
    return nodeid_of(CellId(clause, NEW_PMAP, topology, target))


def test_the_cells_of_one_cluster_are_one_group() -> None:
    assert group(nodeid("errors.a")) == group(nodeid("errors.b"))
    others = {
        group(nodeid("errors.a", "4x2")),
        group(nodeid("errors.a", target="jax==0.9.0")),
        group(nodeid("errors.a")),
    }
    assert len(others) == 3


def test_other_tests_are_grouped_by_module() -> None:
    assert group("suites/test_a.py::T::test[1::2]") == group("suites/test_a.py::test_b")
    assert group("suites/test_a.py::test_b") == "suites/test_a.py"


def test_a_large_group_is_split_by_clause() -> None:
    names = [f"errors.{letter}" for letter in "abcdefgh"]
    assert len({group(nodeid(name), 4) for name in names}) == 4
    for name in names:
        cells = [
            CellId(name, implementation, "1x8", "current") for implementation in IMPLEMENTATIONS
        ]
        assert len({group(nodeid_of(cell), 4) for cell in cells}) == 1


def test_clauses_of_one_run_are_one_group() -> None:
    """A run is kept by the pytest worker that made it, so that all who judge it must be there."""
    together = tuple(f"errors.{letter}" for letter in "abcdefgh")
    alone = tuple(f"inputs.{letter}" for letter in "abcdefgh")
    runs = dict.fromkeys(together, together) | {name: (name,) for name in alone}
    assert len({group(nodeid(name), 4) for name in together}) == 4
    assert len({group(nodeid(name), 4, runs) for name in together}) == 1
    assert {group(nodeid(name), 4, runs) for name in alone} == {
        group(nodeid(name), 4) for name in alone
    }
    first = group(nodeid(together[0]), 4)
    assert {group(nodeid(name), 4, runs) for name in together} == {first}


def test_clauses_of_one_run_are_apart_where_their_clusters_are() -> None:
    runs = dict.fromkeys(("errors.a", "errors.b"), ("errors.a", "errors.b"))
    assert group(nodeid("errors.a"), 4, runs) == group(nodeid("errors.b"), 4, runs)
    assert group(nodeid("errors.a"), 4, runs) != group(nodeid("errors.b", "4x2"), 4, runs)
    other = nodeid("errors.b", target="jax==0.9.0")
    assert group(nodeid("errors.a"), 4, runs) != group(other, 4, runs)


def test_a_clause_that_the_runs_do_not_name_is_grouped_by_itself() -> None:
    runs = {"errors.a": ("errors.a", "errors.b")}
    for name in ("errors.c", "errors.d", "errors.e"):
        assert group(nodeid(name), 4, runs) == group(nodeid(name), 4)


def test_the_real_clauses_of_one_run_are_one_group() -> None:
    runs = load().runs
    shared = {ids for ids in runs.values() if len(ids) > 1}
    assert shared
    for ids in shared:
        assert len({group(nodeid(name), 16, runs) for name in ids}) == 1
    chunks = {group(nodeid(name), 16, runs) for name in runs}
    assert len(chunks) == 16


@pytest.mark.parametrize(
    ("cells", "workers", "chunks"),
    [(0, 4, 1), (23, 4, 1), (24, 4, 1), (47, 4, 1), (48, 4, 2), (240, 8, 10), (1920, 2, 32)],
)
def test_chunks_are_neither_too_small_nor_too_many(cells: int, workers: int, chunks: int) -> None:
    few = [nodeid("errors.a", "4x2")] * min(cells, 3)
    tests = ["suites/test_a.py::test_b"] * 100
    assert chunks_for([nodeid("errors.a")] * cells + few + tests, workers) == chunks


# What a failing cell says


def failing(*steps_of_last: dict[str, object]) -> str:
    """The message of a cell on four processes of which the last did something else."""
    clause = clause_of(returns(doubled), topologies=("4x1",))
    cell = cell_of(clause, topology="4x1")
    records = [
        observation(returned(np.array([2.0 * (p + 1)], np.float32)), process=p, processes=4)
        for p in range(3)
    ]
    records.append(observation(*steps_of_last, process=3, processes=4))
    record = record_of(runner_on(FakePool(records), clause), cell)
    return failure(cell, clause, CLAIMS, record)


def parts(message: str) -> dict[str, list[str]]:
    """Return the lines of a message below each of its labels."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in message.splitlines()[1:]:
        if not line.startswith("   "):  # the others go on from the one above
            label, line = line[2:12].strip(), line[12:]
        found.setdefault(label, []).append(line.strip())
    return found


def test_a_failure_says_all_that_is_needed_to_believe_it() -> None:
    claim = CLAIMS.claims["migrate-pmap.incompatible-devices"]
    clause = clause_of(returns(doubled))
    text = failing(raised(message="no such device"))
    found = parts(text)
    assert text.startswith(f"DEVIATES: errors.sample under new_pmap, {SPEC}, 4x1\n")
    assert found["statement"] == [claim.statement]
    assert found["source"] == [f"{CLAIMS.documents[claim.document].title}, “{claim.heading}”"]
    assert found["clause"] == [clause.title]
    assert found["expected"] == [returns(doubled).text]
    assert found["file"][0].startswith(clause.where[0])
    for label in ("reason", "failed"):
        (line,) = found[label]
        for part in ("a call", "ValueError", "lower", "no such device"):
            assert part in line
    assert found["failed"][0].startswith("process 3, ")
    assert returns(doubled).text in found["failed"][0]


def test_a_failure_names_the_entries_that_are_about_other_cells() -> None:
    clause = clause_of(returns(doubled), topologies=("1x1",))
    cell = cell_of(clause, topology="1x1")
    pool = FakePool([observation(returned(WRONG), processes=1)])
    record = record_of(runner_on(pool, clause), cell)
    assert parts(failure(cell, clause, CLAIMS, record, ["for 2x2"]))["entry"] == ["for 2x2"]
    assert "entry" not in parts(failure(cell, clause, CLAIMS, record))


def test_a_failure_shows_the_odd_process_first() -> None:
    observed = parts(failing(raised()))["observed"]
    assert [line.split()[1] for line in observed] == ["3", "0", "1", "2"]
    assert [re.findall(r"ValueError|\[\d\.\]", line) for line in observed] == [
        *(["ValueError"], ["[2.]"], ["[4.]"], ["[6.]"]),
    ]


def test_processes_that_saw_the_very_same_are_said_together() -> None:
    records = [observation(raised(), process=p) for p in range(2)]
    records += [observation(returned(WRONG), process=p) for p in (2, 3)]
    clause = clause_of(returns(doubled), topologies=("4x1",))
    cell = cell_of(clause, topology="4x1")
    text = failure(cell, clause, CLAIMS, record_of(runner_on(FakePool(records), clause), cell))
    observed = parts(text)["observed"]
    assert [re.findall(r"\d, \d|raised|returned", line) for line in observed] == [
        ["0, 1", "raised"],
        ["2, 3", "returned"],
    ]


def test_a_failure_tells_an_exceptions_whole_text_and_where_it_came_from() -> None:
    long = "Received " + "x" * 500
    text = failing(raised(message=long, frames=["a.py:outer", "b.py:inner"]))
    whole, *frames = parts(text)["raised"]
    assert whole.endswith(f"ValueError: {long}")
    assert [line.split(":")[-1] for line in frames] == ["outer", "inner"]


def test_a_row_is_named_in_a_failure() -> None:
    clause = clause_of(returns(doubled), parameters={"form": "zero"})
    cell = cell_of(clause)
    record = record_of(runner_on(FakePool(observations(returned(WRONG))), clause), cell)
    assert parts(failure(cell, clause, CLAIMS, record))["row"] == ["form = 'zero'"]


def test_a_failure_shows_each_step() -> None:
    text = failing(returned(np.array([8.0], np.float32)), raised(name=SECOND))
    first, second, *_ = parts(text)["observed"]
    assert first.startswith("process 3")
    assert "[8.]" in first
    assert f"{SECOND}: raised ValueError" in second


def test_a_failure_shows_what_each_process_was_doing() -> None:
    fault = ClusterFault(
        Verdict.CRASHED,
        "process 1 was killed by SIGSEGV",
        (
            ProcessState(1, "was killed by SIGSEGV", "SIGSEGV", None, "", "about to die\n"),
            ProcessState(
                0,
                "in the probe",
                stack="\n".join(f"  File {n}" for n in range(MOST_STACK_LINES + 5)),
                log="\n".join(f"line {n}" for n in range(MOST_LOG_LINES + 5)),
            ),
        ),
    )
    clause = clause_of(returns(doubled))
    cell = cell_of(clause)
    record = record_of(runner_on(FakePool(fault), clause), cell)
    text = failure(cell, clause, CLAIMS, record)
    assert text.startswith("CRASHED: errors.sample")
    found = parts(text)
    assert found["reason"] == ["process 1 was killed by SIGSEGV"]
    assert list(found)[-3:] == ["process 1", "process 0", "reproduce"]
    assert "SIGSEGV" in found["process 1"][0]
    assert "    | about to die\n" in text
    assert f"File {MOST_STACK_LINES - 1}\n" in text
    assert f"File {MOST_STACK_LINES}\n" not in text
    assert f"| line {MOST_LOG_LINES + 4}\n" in text
    assert "| line 4\n" not in text


def test_a_claim_of_silence_has_no_heading_to_show() -> None:
    silent = next(claim for claim in CLAIMS.claims.values() if not claim.heading)
    clause = clause_of(returns(doubled), claim=silent.slug)
    cell = cell_of(clause)
    record = record_of(runner_on(FakePool(observations(returned(WRONG))), clause), cell)
    source = parts(failure(cell, clause, CLAIMS, record))["source"]
    assert source == [CLAIMS.documents[silent.document].title]


@pytest.mark.parametrize(
    "target", ["jax==0.9.0", "jax==0.12.0.1", "/my envs/it's-new_pmap/bin/python", "/a/$HOME/`x`"]
)
def test_the_line_that_reproduces_a_cell_survives_the_shell(target: str) -> None:
    clause = clause_of(returns(doubled), topologies=("1x8",))
    cell = CellId(clause.id, LEGACY_PMAP, "4x2", target)
    line = reproduce(nodeid_of(cell), cell, clause)
    assert "\n" not in line
    assert shlex.split(line) == [
        "pytest",
        nodeid_of(cell),
        "--target",
        target,
        "--topology",
        "4x2",
    ]
    assert parse_nodeid(shlex.split(line)[1]) == cell


def test_the_line_that_reproduces_a_cell_leaves_out_what_is_the_default() -> None:
    clause = clause_of(returns(doubled), topologies=("1x8", "4x2"))
    cell = CellId(clause.id, NEW_PMAP, "4x2", "current")
    line = reproduce(nodeid_of(cell), cell, clause)
    assert shlex.split(line) == ["pytest", nodeid_of(cell)]


def test_the_line_that_reproduces_a_cell_has_what_the_clause_and_the_run_need() -> None:
    clause = clause_of(returns(doubled), topologies=("2x2",), requires=("flax",))
    cell = cell_of(clause)
    line = reproduce(nodeid_of(cell), cell, clause, "cuda")
    wanted = ["--target", SPEC, "--extra", "flax", "--platform", "cuda"]
    assert shlex.split(line) == ["pytest", nodeid_of(cell), *wanted]
    timed = clause_of(returns(doubled), topologies=("2x2",), timing=Timing(("call",), ()))
    line = reproduce(nodeid_of(cell), cell, timed)
    assert shlex.split(line)[2:] == ["-m", "benchmark", "--target", SPEC]


def test_a_failure_ends_with_the_line_that_reproduces_it() -> None:
    last = failing(raised()).splitlines()[-1]
    words = shlex.split(last.removeprefix("  reproduce  "))
    assert words[0] == "pytest"
    assert parse_nodeid(words[1]) == CellId("errors.sample", NEW_PMAP, "4x1", SPEC)
    assert words[2:] == ["--target", SPEC]


# Processes that saw the same


def test_processes_that_saw_the_same_are_one_group() -> None:
    records = [*observations(), observation(raised(), process=2), observation(process=3)]
    groups = odd_first(received(record) for record in records)
    assert [processes for processes, _ in groups] == [[2], [0, 1, 3]]
    assert [one.process for _, one in groups] == [2, 0]


def test_another_message_is_another_group() -> None:
    records = [observation(raised(message=m), process=p) for p, m in enumerate(["a", "b", "a"])]
    groups = odd_first(received(record) for record in records)
    assert [processes for processes, _ in groups] == [[1], [0, 2]]


def test_a_step_less_is_another_group() -> None:
    records = [*observations(), observation(*observation()["steps"][:1], process=2)]
    groups = odd_first(received(record) for record in records)
    assert [processes for processes, _ in groups] == [[2], [0, 1]]


def test_nothing_observed_has_no_groups() -> None:
    assert odd_first([]) == []


def test_a_failure_without_observations_can_be_said() -> None:
    clause = clause_of(raises(ValueError, "no"))
    cell = cell_of(clause)
    record = record_of(runner_on(FakePool([]), clause), cell)
    text = failure(cell, clause, CLAIMS, record)
    assert parts(text)["failed"][0].startswith("process 0, proof")
    assert "observed" not in parts(text)
