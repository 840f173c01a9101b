"""The core tier: it shows each fact, deviation entry and cause that a full run shows."""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from judged import clause_of
from real import catalogue, entries
from records import doubled

from conformance.catalogue.loading import Catalogue
from conformance.judging import deviations
from conformance.judging.applicability import skipped_everywhere
from conformance.spec import names
from conformance.spec.clause import Clause
from conformance.spec.expectation import returns
from conformance.spec.topology import Topology
from harness.plugin import options
from harness.plugin.options import Options
from harness.plugin.session import Session
from harness.running import tiers
from harness.running.cells import CellId, select
from harness.running.runner import Asked
from harness.running.tiers import Duration, Run, core, run_of

CATALOGUE = catalogue()
ENTRIES = entries()
OLD, NEW = "jax==0.9.0", "jax==0.12.0.1"  # the main job's
VERSIONS = {OLD: "0.9.0", NEW: "0.12.0.1"}


@functools.cache
def every_cell() -> tuple[CellId, ...]:
    sections = CATALOGUE.sections()
    return tuple(c for s in sections for c in select(CATALOGUE, s, names.COLUMNS, [OLD, NEW]))


@functools.cache
def chosen() -> tiers.Tier:
    return core(every_cell(), CATALOGUE, ENTRIES, VERSIONS, names.CPU)


def applies(cell: CellId) -> bool:
    """Return whether a full run runs the cell."""
    clause = CATALOGUE.clauses[cell.clause]
    removed = cell.implementation == names.LEGACY_PMAP and cell.target == NEW
    topology = Topology.parse(cell.topology)
    excused = skipped_everywhere(clause, cell.implementation, topology) is not None
    return not excused and not (removed and not clause.selects)


def matches(entry: deviations.Deviation, cell: CellId) -> bool:
    version = VERSIONS[cell.target]
    return entry.matches(cell.clause, cell.implementation, version, names.CPU, cell.topology)


def test_every_fact_is_shown_under_every_implementation_that_can() -> None:
    def facts(cells: Any) -> set[tuple[str, str]]:
        return {(CATALOGUE.clauses[c.clause].fact, c.implementation) for c in cells}

    assert facts(chosen().cells) == facts(filter(applies, every_cell()))


def test_every_entry_with_a_cell_on_the_two_targets_is_shown() -> None:
    running = [cell for cell in every_cell() if applies(cell)]
    by_clause: dict[str, list[CellId]] = {}
    for cell in running:
        by_clause.setdefault(cell.clause, []).append(cell)
    shown = 0
    for entry in ENTRIES:
        cells = [
            cell
            for clause in entry.named_in(by_clause)
            for cell in by_clause[clause]
            if matches(entry, cell)
        ]
        shown += bool(cells)
        assert not cells or chosen().cells.intersection(cells), entry.where
    assert shown > 300


def test_every_cause_with_a_cell_on_the_two_targets_is_shown() -> None:
    def causes(cells: Any) -> set[str]:
        found = {CATALOGUE.clauses[cell.clause].cause for cell in cells}
        for cell in cells:
            found |= {one.cause for one in named[cell.clause] if matches(one, cell)}
        return found

    named = deviations.ByClause(ENTRIES)
    running = {cell for cell in every_cell() if applies(cell)}
    assert causes(chosen().cells) == causes(running)
    assert len(causes(running)) > 100


def test_the_choice_does_not_depend_on_the_order_of_cells() -> None:
    shuffled = list(every_cell())
    random.Random(7).shuffle(shuffled)
    assert core(shuffled, CATALOGUE, ENTRIES, VERSIONS, names.CPU) == chosen()


def test_all_clauses_that_judge_a_chosen_run_are_chosen() -> None:
    runs = {run_of(cell, CATALOGUE) for cell in chosen().cells}
    together = {c for c in every_cell() if applies(c) and run_of(c, CATALOGUE) in runs}
    assert together == chosen().cells


def test_the_counts_are_those_of_runs() -> None:
    running = {run_of(cell, CATALOGUE) for cell in every_cell() if applies(cell)}
    assert chosen().of == len(running)
    assert chosen().runs == len({run_of(cell, CATALOGUE) for cell in chosen().cells})
    assert chosen().runs < chosen().of / 4


def declared(id: str, *implementations: str, **other: Any) -> Clause:
    """A clause with a run of its own."""
    expect = dict.fromkeys(implementations or (names.NEW_PMAP,), returns(doubled))
    return clause_of(expect, id, parameters={"of": id}, **({"fact": id} | other))


def small(*clauses: Clause) -> Catalogue:
    return Catalogue({one.id: one for one in clauses})


def chosen_ids(catalogue: Catalogue, *targets: str, versions: Any = None) -> set[str]:
    cells = [
        CellId(one.id, implementation, topology, target)
        for one in catalogue.clauses.values()
        for implementation in one.expect
        for topology in one.topologies
        for target in targets
    ]
    return set(map(str, core(cells, catalogue, (), versions or VERSIONS, names.CPU).cells))


def test_a_fact_is_shown_on_the_newest_target_that_has_its_implementation() -> None:
    one = declared("errors.a", *names.IMPLEMENTATIONS)
    assert chosen_ids(small(one), OLD, NEW) == {
        f"errors.a-legacy_pmap-1x8-{OLD}",
        f"errors.a-new_pmap-1x8-{NEW}",
        f"errors.a-shard_map-1x8-{NEW}",
    }


def test_a_target_of_unknown_version_counts_as_the_newest() -> None:
    one = declared("errors.a")
    versions = {OLD: "0.9.0", "nightly": None}
    assert chosen_ids(small(one), OLD, "nightly", versions=versions) == {
        "errors.a-new_pmap-1x8-nightly"
    }


def test_the_run_that_computes_least_shows_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    clauses = [declared(f"errors.{name}", fact="errors.fact") for name in "abc"]
    slow = {("1x8", "errors.a"): Duration(1.0, 9.0), ("1x8", "errors.b"): Duration(5.0, 5.0)}
    monkeypatch.setattr(tiers, "_durations", lambda: slow)
    assert chosen_ids(small(*clauses), NEW) == {f"errors.c-new_pmap-1x8-{NEW}"}
    slow["1x8", "errors.c"] = Duration(0.1, 7.0)
    assert chosen_ids(small(*clauses), NEW) == {f"errors.b-new_pmap-1x8-{NEW}"}


def test_a_fact_about_several_processes_is_shown_by_several() -> None:
    own = declared("errors.fact", topologies=("2x2", "4x2"))
    other = declared("errors.other", fact="errors.fact", topologies=("1x8",))
    assert chosen_ids(small(own, other), NEW) == {f"errors.fact-new_pmap-2x2-{NEW}"}


@pytest.mark.parametrize(
    ("seconds", "busy", "waits"), [(10.0, 1.0, True), (10.0, 6.0, False), (1.0, 0.0, False)]
)
def test_only_a_long_run_that_hardly_computes_waits(
    seconds: float, busy: float, waits: bool
) -> None:
    assert Duration(seconds, busy).waits is waits


def test_the_durations_are_of_runs_that_there_are() -> None:
    firsts = {CATALOGUE.runs[id][0] for id in CATALOGUE.clauses}
    gone = [clause for _, clause in tiers._durations() if clause not in firsts]
    assert not gone, "write them anew: pmap-conformance results durations RESULTS"
    assert tiers.duration(Run(NEW, "1x8", "errors.no-such-clause", "jax")) == Duration()


def session(**chosen_options: Any) -> Session:
    chosen_options = {"tier": tiers.FULL, "clauses": ()} | chosen_options
    given = Options(
        targets=(Asked(OLD, None, jax="0.9.0"), Asked(NEW, None, jax="0.12.0.1")),
        topologies=(),
        implementations=names.COLUMNS,
        platform=names.CPU,
        deadline_s=None,
        repeat=1,
        isolated=False,
        blocks=2,
        run="1",
        **chosen_options,
    )
    return Session(given, CATALOGUE, None, ENTRIES)  # type: ignore[arg-type]


def test_a_session_collects_its_tier() -> None:
    sections = CATALOGUE.sections()
    of_core, of_full = session(tier=tiers.CORE), session()
    assert {c for s in sections for c in of_core.cells(s)} == chosen().cells
    assert {c for s in sections for c in of_full.cells(s)} == set(every_cell())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["suites/"], False),
        (["suites/test_errors.py"], False),
        (["suites/test_errors.py::test_errors"], False),
        (["suites/test_errors.py::test_errors[errors.a-new_pmap-1x8-current]"], True),
    ],
)
def test_who_names_cells_gets_them_all(arguments: list[str], named: bool) -> None:
    config: Any = SimpleNamespace(args=arguments, getoption=lambda _: [])
    assert options._names_cells(config) is named
    config.getoption = lambda name: ["errors"] if name == "clause" else []
    assert options._names_cells(config)


def test_the_self_tests_are_collected_where_they_are_named(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    (suites / "selftests").mkdir(parents=True)
    shutil.copy(Path(__file__).parents[2] / "conftest.py", suites)
    (suites / "test_suite.py").write_text("def test_suite(): pass")
    for name in ("one", "two"):
        (suites / "selftests" / f"test_{name}.py").write_text(f"def test_{name}(): pass")

    def collected(*arguments: str) -> set[str]:
        command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path)]
        command += ["--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return {line.rpartition("::")[2] for line in ran.stdout.splitlines() if "::" in line}

    assert collected("suites") == {"test_suite"}
    assert collected("suites/selftests") == {"test_one", "test_two"}
    assert collected("suites", "suites/selftests") == {"test_suite", "test_one", "test_two"}
    assert collected("suites", "suites/selftests/test_two.py") == {"test_suite", "test_two"}
