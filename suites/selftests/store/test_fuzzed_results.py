"""Wrong results files end no command with a traceback: what cannot be used is said in one line.

The mistakes are drawn with a seed: another one draws others (`CONFORMANCE_SEED=N`).
"""

from __future__ import annotations

import functools
import json
import os
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from fake_pool import SPEC, FakePool, cell_of, record_of, runner_on
from fuzzed import Record, fuzzed
from judged import clause_of
from records import (
    cell,
    clause,
    doubled,
    observations,
    raised,
    returned,
    strength,
    target,
    timing,
    write,
)
from records import observation as seen
from sample_results import sample

from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue
from conformance.judging import deviations
from conformance.spec.expectation import returns
from conformance.store.errors import ResultsError
from harness.commandline.main import main
from harness.plugin.sharding import durations
from harness.results import rejudge
from harness.results.recorder import Recorder
from reports.render.site import build as site

SEED = int(os.environ.get("CONFORMANCE_SEED", "25"))
# A few mistakes of one seed in seconds; the others with the self-tests that take long.
SEEDS = [
    (SEED, range(10)),
    pytest.param(SEED, range(10, 100), marks=pytest.mark.long),
    *(pytest.param(SEED + n, range(100), marks=pytest.mark.long) for n in range(1, 10)),
]
DONE, FAILED, REFUSED = 0, 1, 2
GOOD = clause_of(returns(doubled))

Command = Callable[[Sequence[str]], int]


def records() -> list[Record]:
    """A file for reports: each kind of record and of ending, two versions, three columns."""
    legacy = {"implementation": "legacy_pmap"}
    error = [seen(raised(), process=process) for process in range(4)]
    return [
        *sample(),
        target("0.9.2"),
        clause("errors.index", topologies=["4x2"], cause="a-cause"),
        *(cell("errors.index", target=f"jax=={jax}", **legacy) for jax in ("0.9.0", "0.9.2")),
        cell("errors.index", target="jax==0.9.2", observations=error),
        timing("errors.index", "errors.conforms"),
        strength("errors.index"),
    ]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("right") / "right.jsonl", records())


@pytest.fixture(autouse=True)
def _nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMAP_CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", autouse=True)
def _templates() -> Iterator[None]:
    """Each is compiled once, not for each site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "environment", functools.cache(site.environment))
        yield


def tried(argv: list[str], named: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """The command's status; the test fails where it ends otherwise than commands end."""
    __tracebackhide__ = True
    try:
        status = main(argv)
    except Exception:  # whatever it is: no command may end so
        pytest.fail(f"{argv}:\n{traceback.format_exc(limit=-6)}")
    said = capsys.readouterr().err
    assert status in (DONE, FAILED, REFUSED), argv
    if status == REFUSED:
        assert said.count("\n") == 1, argv
        assert said.endswith("\n"), argv
        assert named.name in said or re.search("--(from|to)", said), argv
    return status


@pytest.mark.parametrize(("seed", "numbers"), SEEDS)
def test_reports_of_wrong_files(
    seed: int,
    numbers: range,
    right: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    some, ends = records(), []
    for number in numbers:
        wrong = fuzzed(some, seed, number, tmp_path / f"case-{seed}-{number}.jsonl")
        file = str(wrong)
        sides = ["--from", "legacy_pmap@0.9.0", "--to", "new_pmap@0.9.2"]
        for argv in (
            ["results", "summary", "--no-cache", "--format", "json", file],
            ["results", "summary", "--no-cache", file],
            ["results", "compare", str(right), file],
            ["results", "compare", file, str(right)],
            ["report", "findings", file],
            ["report", "upgrade", "--no-cache", file, *sides, "--format", "json"],
            ["report", "site", file, "-o", str(tmp_path / "site")],
        ):
            ends.append(tried(argv, wrong, capsys))
        wrong.unlink()
    assert {DONE, REFUSED} <= set(ends)  # of these mistakes some are none, and some are seen
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize(("seed", "numbers"), SEEDS)
def test_causes_and_durations_of_wrong_files(
    seed: int,
    numbers: range,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(deviations, "load_all", functools.cache(deviations.load_all))
    some, ends = records(), []
    for number in numbers:
        wrong = fuzzed(some, seed, number, tmp_path / f"case-{seed}-{number}.jsonl")
        ends.append(tried(["causes", "list", str(wrong)], wrong, capsys))
        said = wrong.name
        try:
            durations(wrong)
        except ResultsError as error:
            said = str(error)
        assert wrong.name in said
    assert {DONE, REFUSED} <= set(ends)


@pytest.mark.parametrize(("seed", "numbers"), SEEDS)
def test_rejudging_wrong_files(
    seed: int,
    numbers: range,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    catalogue = Catalogue({GOOD.id: GOOD})
    monkeypatch.setattr(loading, "load", lambda: catalogue)
    monkeypatch.setattr(rejudge.deviations, "load_all", tuple)
    recorded = tmp_path / "recorded.jsonl"
    recorder = Recorder(recorded, "run", catalogue, load_claims())
    for one in (observations(), observations(returned([0.0, 0.0]))):
        runner = runner_on(FakePool(one), GOOD)
        recorder.cell(record_of(runner, cell_of(GOOD)), runner.facts[SPEC])
    recorder.close()
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    some = [one for one in lines if one["kind"] in ("target", "clause", "cell")]
    output, ends = tmp_path / "all.jsonl", []
    for number in numbers[::2]:  # the catalogue's statements are written each time
        wrong = fuzzed(some, seed, number, tmp_path / f"case-{seed}-{number}.jsonl")
        ends.append(tried(["results", "merge", str(wrong), "-o", str(output)], wrong, capsys))
        if ends[-1] == DONE:
            tried(["results", "summary", "--no-cache", str(output)], output, capsys)
            output.unlink()
        wrong.unlink()
        assert sorted(one.name for one in tmp_path.iterdir()) == ["recorded.jsonl"]
    assert {DONE, REFUSED} <= set(ends)
