"""One file of many: every cell once, by today's catalogue, small, and whole or not there at all."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_pool import FACTS, SPEC, FakePool, cell_of, record_of, runner_on
from judged import clause_of, entry
from records import doubled, observations, returned, strength, timing

from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue
from conformance.judging.deviations import Deviation
from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.expectation import returns
from conformance.store.errors import ResultsError
from conformance.store.reading import records
from harness.commandline.main import main
from harness.results import rejudge as rejudging
from harness.results.recorder import Recorder
from harness.results.rejudge import rejudge
from reports.store.results import load

GOOD = clause_of(returns(doubled))
OTHER = clause_of(returns(doubled), "errors.other")
GONE = clause_of(returns(doubled), "errors.gone")
WRONG = returned([0.0, 0.0])
KNOWN = entry(saw={"code": "value"})


def silent(text: str) -> None:
    """Progress that nobody wants."""


@pytest.fixture(autouse=True)
def _catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today's catalogue: without `errors.gone`."""
    monkeypatch.setattr(loading, "load", lambda: Catalogue({one.id: one for one in (GOOD, OTHER)}))
    monkeypatch.setattr(rejudging.deviations, "load_all", tuple)


def written(
    path: Path, run: str, *cells: tuple[Clause, object], facts: Mapping[str, Any] = FACTS
) -> Path:
    """A file of these cells; the recorder says when, so later ones are newer."""
    clauses = {clause.id: clause for clause, _ in cells}
    recorder = Recorder(path, run, Catalogue(clauses), load_claims())
    for clause, seen in cells:
        runner = runner_on(FakePool(seen, facts=facts), clause)
        recorder.cell(record_of(runner, cell_of(clause)), runner.facts[SPEC])
    recorder.close()
    return path


def give_an_earlier_program(path: Path) -> None:
    """Record that the cells of `GOOD` ran another program than today's."""
    some = [json.loads(line) for line in path.read_text().splitlines()]
    for one in some:
        one |= {"program": "0" * 16} if one["kind"] == "cell" and one["clause"] == GOOD.id else {}
    path.write_text("".join(json.dumps(one) + "\n" for one in some))


def cells_of(path: Path) -> list[tuple[str, str]]:
    return [(one.clause, one.verdict) for _, one in records(path) if isinstance(one, Cell)]


def test_every_cell_stands_once_in_the_order_of_clauses(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", "a", (OTHER, observations()), (GOOD, observations(WRONG)))
    b = written(tmp_path / "b.jsonl", "b", (GOOD, observations()))
    found = rejudge([a, b], tmp_path / "all.jsonl", silent)
    assert len(found.kept) == 2
    assert cells_of(tmp_path / "all.jsonl") == [
        (OTHER.id, Verdict.CONFORMS),
        (GOOD.id, Verdict.CONFORMS),
    ]


@pytest.mark.parametrize("order", [1, -1], ids=["red first", "red last"])
def test_of_records_of_one_second_the_last_one_counts(tmp_path: Path, order: int) -> None:
    red = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)))
    green = written(tmp_path / "b.jsonl", "b", (GOOD, observations()))
    for file in (red, green):
        text = re.sub(
            '"started":"[^"]*"', '"started":"2026-01-02T03:04:05+00:00"', file.read_text()
        )
        file.write_text(text)
    rejudge([red, green][::order], tmp_path / "all.jsonl", silent)
    last = Verdict.CONFORMS if order > 0 else Verdict.DEVIATES
    assert cells_of(tmp_path / "all.jsonl") == [(GOOD.id, last)]


def test_what_stands_beside_cells_is_taken_over_once(tmp_path: Path) -> None:
    files = []
    for number in (1, 2):
        file = written(tmp_path / f"{number}.jsonl", str(number), (GOOD, observations()))
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(timing(GOOD.id, rounds=number)) + "\n")
            stream.write(json.dumps(strength(GOOD.id, judged=number)) + "\n")
        files.append(file)
    rejudge(files, tmp_path / "all.jsonl", silent)
    results = load([tmp_path / "all.jsonl"])
    assert [one.rounds for some in results.timings.values() for one in some] == [2]
    assert [one.judged for one in results.strength.values()] == [2]


def test_a_red_cell_stays_red_and_one_that_was_not_run_stays_so(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)))
    rejudge([a], tmp_path / "all.jsonl", silent)
    assert cells_of(tmp_path / "all.jsonl") == [(GOOD.id, Verdict.DEVIATES)]
    text = a.read_text().replace(
        f'"verdict":"{Verdict.DEVIATES}"', f'"verdict":"{Verdict.NOT_RUN}"'
    )
    a.write_text(text)
    rejudge([a], tmp_path / "all.jsonl", silent)
    assert cells_of(tmp_path / "all.jsonl") == [(GOOD.id, Verdict.NOT_RUN)]


@pytest.mark.parametrize("verdict", [Verdict.NOT_RUN, Verdict.FLAKY])
def test_what_no_single_observation_decides_stays_as_it_was_recorded(
    tmp_path: Path, verdict: Verdict
) -> None:
    """The record of a flaky cell has good observations as well: they do not make it green."""
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations()))
    recorded = f'"verdict":"{Verdict.CONFORMS}"'
    assert recorded in a.read_text()
    a.write_text(a.read_text().replace(recorded, f'"verdict":"{verdict}"'))
    rejudge([a], tmp_path / "all.jsonl", silent)
    assert cells_of(tmp_path / "all.jsonl") == [(GOOD.id, verdict)]
    red = pytest.raises(ResultsError, match=r"^1 records are red")
    with red if verdict is Verdict.FLAKY else nullcontext():
        rejudge([a], tmp_path / "none.jsonl", silent, no_red=True)


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        ([], Verdict.DEVIATES),
        ([KNOWN], Verdict.KNOWN_DEVIATION),
        ([replace(KNOWN, packages={"flax": ">=0.12"})], Verdict.KNOWN_DEVIATION),
        ([replace(KNOWN, packages={"flax": "<0.12"})], Verdict.DEVIATES),
        ([KNOWN, KNOWN], Verdict.DEVIATES),
    ],
    ids=["none", "one", "of its packages", "of other packages", "two"],
)
def test_a_cell_is_known_by_the_one_entry_that_is_about_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: list[Deviation], verdict: Verdict
) -> None:
    monkeypatch.setattr(rejudging.deviations, "load_all", lambda: tuple(entries))
    has = {**FACTS, "packages": {"flax": "0.12.8"}}
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)), facts=has)
    rejudge([a], tmp_path / "all.jsonl", silent)
    assert cells_of(tmp_path / "all.jsonl") == [(GOOD.id, verdict)]


def test_what_is_no_more_is_left_out_and_counted(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GONE, observations()), (GOOD, observations()))
    give_an_earlier_program(a)
    found = rejudge([a], tmp_path / "all.jsonl", silent)
    assert dict(found.why) == {"its clause no longer exists": 1, "of another program": 1}
    assert cells_of(tmp_path / "all.jsonl") == []


def test_it_reads_and_writes_compressed_files(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations()))
    rejudge([a], tmp_path / "b.jsonl.xz", silent)
    rejudge([tmp_path / "b.jsonl.xz"], tmp_path / "c.jsonl", silent)
    assert lzma.decompress((tmp_path / "b.jsonl.xz").read_bytes()).startswith(b'{"kind":')
    assert cells_of(tmp_path / "b.jsonl.xz") == cells_of(tmp_path / "c.jsonl") != []
    assert (tmp_path / "b.jsonl.xz").stat().st_size < a.stat().st_size / 3


def test_a_file_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nonsense\n")
    output = tmp_path / "all.jsonl"
    output.write_text("as it was")
    with pytest.raises(ResultsError, match=r"bad\.jsonl:1"):
        rejudge([bad], output, silent)
    assert output.read_text() == "as it was"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.jsonl", "bad.jsonl"]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz"])
def test_the_output_may_be_what_is_read(tmp_path: Path, suffix: str) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)))
    b = written(tmp_path / "b.jsonl", "b", (GOOD, observations()))
    merged, other = tmp_path / f"merged{suffix}", tmp_path / f"other{suffix}"
    rejudge([a], merged, silent)
    rejudge([merged, b], other, silent)
    rejudge([merged, b], merged, silent)
    assert cells_of(merged) == cells_of(other) == [("errors.sample", "conforms")]
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        ["a.jsonl", "b.jsonl", merged.name, other.name]
    )


def test_a_refused_merge_leaves_the_output_that_it_read(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)))
    before = a.read_bytes()
    with pytest.raises(ResultsError, match=r"^1 records"):
        rejudge([a], a, silent, no_red=True)
    assert a.read_bytes() == before


def test_the_command_tells_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = written(tmp_path / "a.jsonl", "a", (GOOD, observations()), (GONE, observations()))
    assert main(["results", "merge", str(a), "-o", str(tmp_path / "all.jsonl")]) == 0
    told = capsys.readouterr().out
    assert "1 cell," in told
    assert "1 left out: " in told
    assert (
        main(["results", "merge", str(tmp_path / "none"), "-o", str(tmp_path / "all.jsonl")]) == 2
    )
    assert "none" in capsys.readouterr().err


def test_where_nothing_may_be_lost_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cell of an earlier program is refused, unless a file has it anew."""
    old = written(tmp_path / "a.jsonl", "a", (GOOD, observations()), (GONE, observations()))
    give_an_earlier_program(old)
    output = tmp_path / "all.jsonl"
    merge = ["results", "merge", "--fail-on", "red,lost", "-o", str(output)]

    assert main([*merge, str(old)]) == 1
    assert not output.exists()
    assert "1 cell would be lost" in capsys.readouterr().err
    anew = written(tmp_path / "b.jsonl", "b", (GOOD, observations()))
    assert main([*merge, str(old), str(anew)]) == 0
    assert cells_of(output) == [("errors.sample", "conforms")]


def test_where_nothing_may_be_red_nothing_is_written(tmp_path: Path) -> None:
    """A red cell is refused, unless a newer record of it is not red; so is a red measurement."""
    red = written(tmp_path / "a.jsonl", "a", (GOOD, observations(WRONG)))
    output = tmp_path / "all.jsonl"
    with pytest.raises(ResultsError, match=r"^1 records .*errors\.sample"):
        rejudge([red], output, silent, no_red=True)
    assert not output.exists()
    green = written(tmp_path / "b.jsonl", "b", (GOOD, observations()))
    rejudge([red, green], output, silent, no_red=True)
    assert cells_of(output) == [("errors.sample", "conforms")]
    measured = timing("errors.sample", seconds=None, ratios=[], rounds=0, failed="hung: it hangs")
    slow = tmp_path / "timing.jsonl"
    slow.write_text(
        green.read_text() + json.dumps(measured | {"target": SPEC, "verdict": "hung"}) + "\n"
    )
    with pytest.raises(ResultsError, match=r"^1 records "):
        rejudge([slow], tmp_path / "other.jsonl", silent, no_red=True)


def test_a_cell_of_which_nothing_ran_is_not_lost_with_its_program(tmp_path: Path) -> None:
    """An implementation that a version lacks is lacking, whatever the clause runs elsewhere."""
    old = written(tmp_path / "a.jsonl", "a", (GOOD, observations()))
    give_an_earlier_program(old)
    lines = [json.loads(line) for line in old.read_text().splitlines()]
    for one in lines:
        one |= {"verdict": "removed", "observations": []} if one["kind"] == "cell" else {}
    old.write_text("".join(json.dumps(one) + "\n" for one in lines))
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    rejudge([old], once, silent, no_lost=True)
    rejudge([once], twice, silent, no_lost=True)
    assert cells_of(once) == cells_of(twice) == [(GOOD.id, Verdict.REMOVED)]
    (cell,) = (one for _, one in records(twice) if isinstance(one, Cell))
    assert cell.program != "0" * 16
