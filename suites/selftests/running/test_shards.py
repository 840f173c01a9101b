"""Shards: together exactly the whole, none twice, whole runs, and equally long."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import records
from judged import clause_of
from records import doubled

from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import load
from conformance.spec.expectation import returns
from conformance.spec.names import COLUMNS
from harness.plugin import sharding
from harness.plugin.options import Options
from harness.plugin.session import Session
from harness.running.cells import CellId, select
from harness.running.runner import Asked
from harness.running.shards import Shard, cut, parse, unit

CATALOGUE = load()
TARGETS = ("jax==0.7.2", "jax==0.9.0", "jax==0.12.0.1")
SECTIONS = CATALOGUE.sections()
CELLS = [cell for section in SECTIONS for cell in select(CATALOGUE, section, COLUMNS, TARGETS)]
SOME = random.Random(1)
SECONDS = {cell: SOME.expovariate(1.0) for cell in CELLS if SOME.random() < 0.9}
PARTS = 12


def parts(
    count: int = PARTS,
    cells: list[CellId] = CELLS,
    seconds: Mapping[CellId, float] | None = None,
) -> list[list[CellId]]:
    """The cells of each part."""
    runs = CATALOGUE.runs
    shards = [cut(cells, runs, seconds or {}, n, count) for n in range(1, count + 1)]
    return [[cell for cell in cells if one.has(unit(cell, runs))] for one in shards]


@pytest.mark.parametrize("count", [1, 2, 12, pytest.param(100, marks=pytest.mark.long)])
def test_all_parts_together_are_the_whole_and_none_is_in_two(count: int) -> None:
    found = [cell for part in parts(count) for cell in part]
    assert len(found) == len(CELLS) > 10_000
    assert set(found) == set(CELLS)


def test_with_durations_too() -> None:
    found = [cell for part in parts(seconds=SECONDS) for cell in part]
    assert sorted(map(str, found)) == sorted(map(str, CELLS))


def test_more_parts_than_cells_leave_some_empty_and_lose_none() -> None:
    few = CELLS[:5]
    found = parts(40, few)
    assert sum(map(len, found)) == 5
    assert [] in found


def test_clauses_that_judge_one_run_stay_together() -> None:
    for part in parts(seconds=SECONDS):
        units = {unit(cell, CATALOGUE.runs) for cell in part}
        assert sum(unit(cell, CATALOGUE.runs) in units for cell in CELLS) == len(part)


def test_parts_take_equally_long_by_the_durations() -> None:
    took = [sum(SECONDS.get(cell, 1.0) for cell in part) for part in parts(seconds=SECONDS)]
    assert max(took) < 1.1 * sum(took) / PARTS
    # Where all the time lies in one topology, most parts are of it.
    slow = {cell: 1.0 if cell.topology == "4x2" else 1e-6 for cell in CELLS}
    assert sum(any(c.topology == "4x2" for c in part) for part in parts(seconds=slow)) >= PARTS - 3


def test_a_part_needs_few_targets() -> None:
    assert sum(len({cell.target for cell in part}) for part in parts()) <= PARTS + 3


def test_the_order_of_options_does_not_matter() -> None:
    turned = [c for s in CATALOGUE.sections() for c in select(CATALOGUE, s, COLUMNS, TARGETS[::-1])]
    shards = [cut(cells, CATALOGUE.runs, {}, 3, PARTS) for cells in (CELLS, turned)]
    assert shards[0] == shards[1]


@pytest.mark.parametrize(
    ("text", "found"), [("1/1", (1, 1)), ("3/12", (3, 12)), ("12/12", (12, 12))]
)
def test_reads(text: str, found: tuple[int, int]) -> None:
    assert parse(text) == found


@pytest.mark.parametrize("text", ["0/12", "13/12", "3", "3/0", "-1/2", "a/b", ""])
def test_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="write which of how many"):
        parse(text)


# In a run


def session() -> Session:
    targets = tuple(Asked(spec, None, "not here") for spec in TARGETS)
    chosen = Options(targets, (), COLUMNS, (), "cpu", None, 1, False, 6, "0a1b2c3d")
    return Session(chosen, CATALOGUE, load_claims(), ())


def asked(**options: Any) -> Any:
    return SimpleNamespace(getoption={"shard": None, "durations_of": None, **options}.get)


def test_a_run_of_a_shard_has_its_cells_alone_in_each_test_process() -> None:
    found: list[CellId] = []
    for number in range(1, 4):
        one = session()
        sharding.choose(asked(shard=f"{number}/3"), one)
        one.options = Options.load(one.options.dump())  # as a test process is given them
        assert isinstance(one.options.shard, Shard)
        found += [cell for name in CATALOGUE.sections() for cell in one.cells(name)]
    assert len(found) == len(set(found)) == len(CELLS)


def test_a_run_without_has_all() -> None:
    one = session()
    sharding.choose(asked(), one)
    assert one.options.shard is None
    with pytest.raises(ValueError, match="name one, as in 3/12"):
        sharding.choose(asked(durations_of="old.jsonl"), session())


def test_durations_are_those_of_a_results_file(tmp_path: Path) -> None:
    cell = CellId("errors.a", "new_pmap", "2x2", "jax==0.9.0")
    where = {"topology": cell.topology, "target": cell.target}
    record = records.cell(cell.clause, seconds=2.5, **where)
    file = tmp_path / "old.jsonl"
    file.write_text(f'{json.dumps(record)}\n{{"kind": "cel')
    assert sharding.durations(file) == {cell: 2.5}
    file.write_text('{"kind": "cell"}\n')
    with pytest.raises(ValueError, match=r"old\.jsonl:1: not a record"):
        sharding.durations(file)


def test_a_unit_is_the_first_clause_of_its_run() -> None:
    one = clause_of(returns(doubled))
    cell = CellId(one.id, "new_pmap", "2x2", "current")
    assert unit(cell, {}) == ("current", "2x2", one.id)
    assert unit(cell, {one.id: ("errors.first", one.id)}) == ("current", "2x2", "errors.first")
