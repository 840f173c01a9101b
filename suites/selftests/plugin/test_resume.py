"""Resuming: an earlier run's results are kept if they still apply, and run again if they may not.

Each record is the runner's own, and each test changes one thing between the two runs.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from fake_pool import FACTS, SPEC, FakePool, cell_of, record_of, runner_on
from judged import clause_of
from msgspec.structs import replace
from processes import HANGS_S, new_mark, running_pytest
from records import Record, doubled, observations, returned

from conformance.catalogue.claims import load_claims
from conformance.catalogue.identity import program_digest
from conformance.catalogue.loading import Catalogue
from conformance.judging.rejudging import Rejudging
from conformance.model.codec import encode_record
from conformance.model.records import Cell, Target
from conformance.model.schema import schema
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.expectation import not_applicable, returns
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.store.errors import ResultsError
from harness.plugin import hooks
from harness.plugin.resume import Today
from harness.plugin.resumed_cells import check
from harness.results.gathering import Gathered, gather
from harness.results.recorder import Recorder
from reports.store.results import load

SCHEMA = schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CLAIMS = load_claims()
GOOD = clause_of(returns(doubled))
NEEDY = clause_of(returns(doubled), "errors.needy", requires=("flax",))
WRONG = returned(np.array([0, 0], np.float32))
WITH_FLAX = {**FACTS, "packages": {"flax": "0.12.8"}}
CELL = cell_of(GOOD)


def silent(text: str) -> None:
    """Progress that nobody wants."""


def written(
    path: Path,
    *answers: Any,
    clause: Clause = GOOD,
    implementation: str = NEW_PMAP,
    facts: Mapping[str, Any] = WITH_FLAX,
    run: str = "run-1",
    **other: Any,
) -> Path:
    """A results file with a record of one cell for each of the pool's answers."""
    recorder = Recorder(path, run, Catalogue({clause.id: clause}), CLAIMS)
    for answer in answers:
        runner = runner_on(FakePool(answer, facts=facts), clause)
        record = replace(record_of(runner, cell_of(clause, implementation)), **other)
        recorder.cell(record, runner.facts[SPEC])
    recorder.close()
    return path


def today(*clauses: Clause, facts: Mapping[str, Any] = WITH_FLAX, **programs: str) -> Today:
    """A run of these clauses on the fake target."""
    known = {one.id: one for one in clauses or (GOOD,)}
    cells = {cell_of(one, name) for one in known.values() for name in IMPLEMENTATIONS}
    return Today(
        frozenset(cells),
        {id: program_digest(one) for id, one in known.items()} | programs,
        {SPEC: facts},
        {id: one.requires for id, one in known.items()},
        Rejudging(known, ()),
    )


def edited(path: Path, change: Callable[[Record], Record | None]) -> Path:
    """The file with each record changed; those that become None are left out."""
    records = (json.loads(line) for line in path.read_text().splitlines())
    kept = [one for record in records if (one := change(record)) is not None]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept))
    return path


def found_in(path: Path, now: Today | None = None) -> Gathered:
    return gather([path], now or today(), silent)


def all_of(found: Gathered) -> list[tuple[Target, Cell]]:
    return list(found.records(found.kept))


# What is carried over


def test_a_cell_that_still_holds_is_not_run_again(tmp_path: Path) -> None:
    found = found_in(written(tmp_path / "old.jsonl", observations()))
    assert [key.id for key in found.kept] == [CELL]
    ((target, record),) = all_of(found)
    VALIDATOR.validate(json.loads(encode_record(record)))
    assert (target.run, record.resumed) == ("run-1", "run-1")
    assert record.program == program_digest(GOOD)
    assert record.observations == observations()
    assert not found.why


def test_what_was_carried_over_twice_names_the_run_that_ran_it(tmp_path: Path) -> None:
    first = found_in(written(tmp_path / "old.jsonl", observations()))
    ((target, record),) = all_of(first)
    second = Recorder(tmp_path / "new.jsonl", "run-2", Catalogue({GOOD.id: GOOD}), CLAIMS)
    second.carried(target, record)
    second.close()
    ((again, carried),) = all_of(found_in(tmp_path / "new.jsonl"))
    assert (again.run, carried.resumed) == ("run-1", "run-1")
    (outcome,) = load([tmp_path / "new.jsonl"]).outcomes.values()
    assert (outcome.runs[0].run, outcome.runs[0].cell.resumed) == ("run-1", "run-1")


def test_a_live_target_has_its_own_header_after_one_that_was_carried_over(tmp_path: Path) -> None:
    found = found_in(written(tmp_path / "old.jsonl", observations()))
    new = tmp_path / "new.jsonl"
    recorder = Recorder(new, "run-2", Catalogue({GOOD.id: GOOD}), CLAIMS)
    for target, record in all_of(found):
        recorder.carried(target, record)
    runner = runner_on(FakePool(observations(implementation=SHARD_MAP)), GOOD)
    recorder.cell(record_of(runner, cell_of(GOOD, SHARD_MAP)), runner.facts[SPEC])
    recorder.close()
    runs = {
        key.implementation: one.runs[0].run
        for key, one in load([tmp_path / "new.jsonl"]).outcomes.items()
    }
    assert runs == {NEW_PMAP: "run-1", SHARD_MAP: "run-2"}


def test_a_verdict_is_todays(tmp_path: Path) -> None:
    """A result that deviated conforms under a catalogue that expects it."""
    old = written(tmp_path / "old.jsonl", observations(WRONG))
    (then,) = [json.loads(one) for one in old.read_text().splitlines() if '"kind":"cell"' in one]
    assert then["verdict"] == Verdict.DEVIATES
    now = dataclasses.replace(GOOD, expect=dict.fromkeys(IMPLEMENTATIONS, returns(nothing)))
    ((_, record),) = all_of(found_in(old, today(now, **{GOOD.id: then["program"]})))
    assert record.verdict == Verdict.CONFORMS


def nothing(place: Any) -> Any:
    """zeros"""
    return np.zeros(2, np.float32)


def test_what_has_nothing_to_run_is_carried_over_as_well(tmp_path: Path) -> None:
    """Without legacy pmap the cell says so, and no cluster has to start for it."""
    facts = {**WITH_FLAX, "implementations": [NEW_PMAP]}
    old = written(tmp_path / "old.jsonl", None, implementation=LEGACY_PMAP, facts=facts)
    ((_, record),) = all_of(found_in(old))
    assert record.verdict == Verdict.REMOVED


# What is run again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An older results file."""
    return tmp_path / "old.jsonl"


def refused(path: Path, why: str, now: Today | None = None) -> None:
    found = found_in(path, now)
    assert not found.kept
    assert dict(found.why) == {why: 1}


def test_of_another_program(path: Path) -> None:
    written(path, observations())
    refused(path, "of another program", today(**{GOOD.id: "0" * 16}))


def test_of_another_program_in_a_file_that_names_none(path: Path) -> None:
    written(path, observations())
    gone = ("cell", "program")
    edited(path, lambda r: {k: v for k, v in r.items() if (r["kind"], k) != gone})
    refused(path, "of another program")


def test_what_says_nothing_of_warnings_between_the_steps(path: Path) -> None:
    """Earlier harnesses did not record them, so that nothing of such a cell speaks of them."""
    written(path, observations(between=None))
    refused(path, "recorded without the warnings between the steps")


def test_of_other_parameters(path: Path) -> None:
    written(path, observations())
    now = dataclasses.replace(GOOD, parameters={"size": 3})
    assert program_digest(GOOD) != program_digest(now)
    refused(path, "of another program", today(now))


@pytest.mark.parametrize(
    ("case", "key", "value", "why"),
    [
        ("jaxlib", "jaxlib", "0.9.1", "of another jaxlib"),
        ("jax", "jax", "0.9.1", "of another jax"),
        ("python", "python", "3.12.7", "of another python"),
        ("platform", "platform", "gpu", "of another platform"),
    ],
)
def test_of_another_target(case: str, key: str, value: str, why: str, path: Path) -> None:
    written(path, observations())
    refused(path, why, today(facts={**WITH_FLAX, key: value}))


def test_not_of_another_patch_of_python(path: Path) -> None:
    written(path, observations())
    assert found_in(path, today(facts={**WITH_FLAX, "python": "3.11.2"})).kept


def test_of_another_library_only_where_the_clause_needs_it(path: Path) -> None:
    other = {**WITH_FLAX, "packages": {"flax": "0.10.0"}}
    written(path, observations(), clause=NEEDY)
    assert found_in(path, today(NEEDY)).kept
    refused(path, "of another flax", today(NEEDY, facts=other))
    written(path, observations())
    assert found_in(path, today(facts=other)).kept


def test_red_by_todays_catalogue(path: Path) -> None:
    written(path, observations(WRONG))
    refused(path, "deviates by today's catalogue")


@pytest.mark.parametrize(
    ("verdict", "why"), [(Verdict.NOT_RUN, "not run then"), (Verdict.FLAKY, "flaky then")]
)
def test_nothing_that_speaks_for_it(verdict: str, why: str, path: Path) -> None:
    written(path, observations(), verdict=verdict)
    refused(path, why)


def test_of_another_form(path: Path) -> None:
    written(path, observations(), observations=[{"process": 0}])
    refused(path, "recorded by another version of this program: an observation without 'jax'")


def test_applicable_only_now(path: Path) -> None:
    expect = dict.fromkeys(IMPLEMENTATIONS, not_applicable("no"))
    then = dataclasses.replace(GOOD, expect=expect)
    written(path, None, clause=then)
    refused(path, "not applicable then")


def test_a_cell_that_nobody_asks_for_is_no_matter(tmp_path: Path) -> None:
    found = found_in(written(tmp_path / "old.jsonl", observations()), today(NEEDY))
    assert not found.kept
    assert not found.why


# Several records of a cell


def later(path: Path, started: str) -> Path:
    return edited(path, lambda r: r | ({"started": started} if r["kind"] == "target" else {}))


def day(number: int) -> str:
    return f"2026-01-{number:02}T00:00:00+00:00"


def test_the_newer_record_decides_in_whatever_order_files_are_named(tmp_path: Path) -> None:
    green = later(written(tmp_path / "a.jsonl", observations(), run="a"), day(1))
    red = later(written(tmp_path / "b.jsonl", observations(WRONG)), day(2))
    for files in ([green, red], [red, green]):
        assert not gather(files, today(), silent).kept
    later(green, day(3))
    for files in ([green, red], [red, green]):
        ((_, record),) = all_of(gather(files, today(), silent))
        assert record.resumed == "a"


def test_what_was_not_run_says_nothing_against_what_was(tmp_path: Path) -> None:
    green = later(written(tmp_path / "a.jsonl", observations()), day(1))
    none = written(tmp_path / "b.jsonl", observations(), verdict=Verdict.NOT_RUN)
    later(none, day(2))
    for files in ([green, none], [none, green]):
        assert gather(files, today(), silent).kept


# Files


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "old.jsonl", observations(), observations())
    path.write_bytes(path.read_bytes()[:-40])
    assert found_in(path).kept
    path.write_bytes(path.read_bytes().rpartition(b'{"kind":"cell"')[0][:-40])
    assert not found_in(path).kept


def test_a_compressed_file_reads_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "old.jsonl", observations())
    packed = tmp_path / "old.jsonl.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    assert found_in(packed).kept == found_in(path).kept
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(ResultsError, match="not a whole xz file"):
        found_in(packed)


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"kind": "cell"}', '{"no": "kind"}', '{"kind": "target"}']
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "old.jsonl", observations())
    lines = path.read_text().count("\n")
    with path.open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(ResultsError, match=re.escape(f"{path}:{lines + 1}: not a record")):
        found_in(path)


# The whole way, on this environment's JAX

SUITE = Path(hooks.__file__).resolve().parents[2] / "suites" / "test_errors.py"
OPTIONS = (
    *(str(SUITE), "-c", "/dev/null", "--rootdir", str(SUITE.parents[1]), "-p", "harness.plugin"),
    *("--implementation", NEW_PMAP, "--topology", "1x8"),
    *("--clause", "errors.incompatible-devices.one-device"),
    *("--clause", "errors.incompatible-devices.replicated"),
)


def run(folder: Path, *arguments: str) -> str:
    """Return the output of a run of the two clauses."""
    environment = {"PMAP_CONFORMANCE_CACHE": str(folder / "cache")}
    with running_pytest([*OPTIONS, *arguments], folder, new_mark(), environment) as process:
        ended = process.wait(HANGS_S)
    told = (folder / "pytest.log").read_text()
    assert ended == pytest.ExitCode.OK, told
    return told


def cells_of(path: Path) -> dict[str, Record]:
    """The file's cells; they and their targets fit the schema, as the rest does in `recorder`."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record["kind"] in ("cell", "target"):
            VALIDATOR.validate(record)
    return {one["clause"]: one for one in records if one["kind"] == "cell"}


@pytest.mark.long
def test_an_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "third"))
    run(tmp_path, "--results", str(first))
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join(lines[:-1]) + lines[-1][:100])
    told = run(tmp_path, "-n", "1", "--resume", str(first), "--results", str(second))
    assert "1 cell resumed" in told
    assert re.search(r"\b1 (passed|xfailed)", told)
    resumed, ran = sorted(cells_of(second).values(), key=lambda one: "resumed" not in one)
    assert resumed["resumed"]
    assert "resumed" not in ran
    told = run(tmp_path, "--resume", str(second), "--results", str(third))
    assert "2 cells resumed" in told
    assert "2 deselected" in told
    assert cells_of(third).keys() == cells_of(second).keys()


@pytest.mark.parametrize(
    ("case", "other", "said"),
    [
        ("its_own_results", {"results": "./old.jsonl"}, "it would be overwritten"),
        ("no_results", {"results": None}, "name the new file with --results"),
        ("no_file", {"resume": ["gone.jsonl"]}, "gone.jsonl"),
        ("repeated", {"repeat": 2}, "--repeat"),
        ("isolated", {"isolated": True}, "--isolated"),
    ],
)
def test_before_anything_is_written(
    case: str, other: Record, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.jsonl").touch()
    good = {"resume": ["old.jsonl"], "results": "new", "repeat": 1, "isolated": False}
    check(SimpleNamespace(getoption=good.get))
    with pytest.raises((ValueError, OSError), match=said):
        check(SimpleNamespace(getoption=(good | other).get))
    assert not Path("new").exists()
