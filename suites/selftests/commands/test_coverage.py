"""`coverage`: claims without a clause, and what of the catalogue recorded cells do not exercise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import records
from judged import clause_of, entry
from records import doubled

from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue
from conformance.commands.coverage import MOST_LISTED, Coverage, coverage, lines, record
from conformance.judging.deviations import Deviation
from conformance.spec.clause import Clause
from conformance.spec.expectation import every, not_applicable, raises, returns
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.releases import by_release
from conformance.store.errors import ResultsError
from harness.commandline.main import main

CLAIMS = load_claims()
RETURNS = returns(doubled)
CHANGED = by_release("0.10", before=RETURNS, since=raises(ValueError, "no"))


def clause(id: str = "errors.a", **other: Any) -> Clause:
    """A clause of the first claim, for both pmaps, on 1x8."""
    expect = {LEGACY_PMAP: RETURNS, NEW_PMAP: RETURNS, SHARD_MAP: not_applicable("no")}
    made = replace(clause_of(expect), id=id, claim=next(iter(CLAIMS.claims)), topologies=("1x8",))
    return replace(made, **other)


def cell(id: str = "errors.a", verdict: str = "conforms", **other: Any) -> Any:
    return records.cell(id, verdict, topology="1x8") | other


BOTH = [cell(), cell(implementation=LEGACY_PMAP)]


@pytest.fixture
def covered(tmp_path: Path) -> Any:
    """Return the coverage of these clauses and entries by cells of jax 0.9.0 or 0.10.0."""

    def coverage_of(
        cells: list[Any], clauses: tuple[Clause, ...] = (clause(),), *entries: Deviation
    ) -> Coverage:
        heads = [records.target(), records.target("0.10.0")]
        file = records.write(tmp_path / "results", [*heads, *cells])
        return coverage(Catalogue({one.id: one for one in clauses}), CLAIMS, entries, [file])

    return coverage_of


def test_all_that_is_exercised_is_not_listed(covered: Any) -> None:
    found = covered(BOTH)
    assert (found.never_run, found.other_topologies, found.unjudged) == ({}, {}, {})
    assert (found.releases, found.idle, found.jax) == ({}, (), ("0.9.0",))


def test_claims_without_a_clause_need_no_results() -> None:
    found = coverage(Catalogue({"errors.a": clause()}), CLAIMS, (), ())
    assert [one.slug for one in found.gaps] == list(CLAIMS.claims)[1:]
    said = list(lines(found))
    assert said[0].startswith(f"{len(CLAIMS.claims) - 1} claims ")
    assert len(said) == len(CLAIMS.claims)
    assert list(record(found)) == ["claims_without_clause"]


def test_a_clause_without_a_cell_was_never_run(covered: Any) -> None:
    found = covered(
        [*BOTH, cell("errors.b", "not run")], (clause(), clause("errors.b"), clause("errors.c"))
    )
    assert found.never_run == {"errors.b": ("1x8",), "errors.c": ("1x8",)}
    assert found.unjudged == {}


def test_a_topology_without_a_cell_is_named(covered: Any) -> None:
    found = covered(BOTH, (clause(topologies=("1x8", "2x2", "4x2")),))
    assert found.other_topologies == {"errors.a": ("2x2", "4x2")}


@pytest.mark.parametrize("verdict", ["removed", "not run", "not applicable"])
def test_an_expectation_is_exercised_by_a_cell_that_was_judged(covered: Any, verdict: str) -> None:
    found = covered([cell(), cell(verdict=verdict, implementation=LEGACY_PMAP)])
    assert found.unjudged == {"errors.a": (LEGACY_PMAP,)}


@pytest.mark.parametrize("expected", [CHANGED, every(RETURNS, CHANGED)])
def test_a_release_that_was_not_run_is_named(covered: Any, expected: Any) -> None:
    one = (clause(expect={NEW_PMAP: expected}),)
    assert covered([cell()], one).releases == {"errors.a": (f"{NEW_PMAP} since 0.10",)}
    assert covered([cell(), cell(target="jax==0.10.0")], one).releases == {}


def test_an_entry_that_excused_nothing_is_idle(covered: Any) -> None:
    one = replace(entry(saw={"code": "value"}), clause=("errors.*",), jax=">=0.9")
    (idle,) = covered([*BOTH, cell(target="jax==0.10.0")], (clause(),), one).idle
    assert (idle.entry, idle.jax) == (one, ("0.9.0", "0.10.0"))
    excused = [cell(verdict="known deviation"), cell(target="jax==0.10.0")]
    assert covered(excused, (clause(),), one).idle == ()


def test_an_entry_does_not_excuse_a_cell_that_deviates(covered: Any) -> None:
    one = replace(entry(saw={"code": "value"}), clause=("errors.*",), jax=">=0.9")
    (idle,) = covered([cell(verdict="deviates")], (clause(),), one).idle
    assert idle.entry == one


def test_an_entry_about_what_was_not_run_is_counted(covered: Any) -> None:
    one = replace(entry(saw={"code": "value"}), clause=("errors.a",), jax="<0.9")
    found = covered(BOTH, (clause(),), one)
    assert (found.idle, found.unasked) == ((), 1)


def test_long_lists_are_cut_unless_all_is_asked_for(covered: Any) -> None:
    many = tuple(clause(f"errors.n{number}") for number in range(MOST_LISTED + 2))
    found = covered([cell("errors.n0"), cell("errors.n0", implementation=LEGACY_PMAP)], many)
    said = list(lines(found))
    assert [one for one in said if one.endswith(f"(errors {MOST_LISTED + 1}):")]
    assert [one for one in said if " 1 more " in one and "--all" in one]
    assert not any("--all" in one for one in lines(found, everything=True))


def test_results_of_other_clauses_are_refused(covered: Any, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no cell"):
        covered([cell("errors.other")])
    torn = tmp_path / "torn"
    torn.write_text('{"kind": "cell"}\n')
    with pytest.raises(ResultsError, match=r"torn:1: not a record"):
        coverage(Catalogue({}), CLAIMS, (), [torn])


def test_the_command_prints_lines_or_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = clause(topologies=("1x8", "2x2"))
    monkeypatch.setattr(loading, "load", lambda: Catalogue({one.id: one}))
    file = str(records.write(tmp_path / "results", [records.target(), *BOTH]))
    assert main(["results", "coverage", file]) == 0
    assert "  errors.a: 2x2" in capsys.readouterr().out.splitlines()
    assert main(["results", "coverage", file, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["topologies_never_run"] == {"errors.a": ["2x2"]}
    assert main(["results", "coverage", str(tmp_path / "none")]) == 2
