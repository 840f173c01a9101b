"""Results of past schema versions, as they were written then: read, counted and shown today.

A schema that changes gets a migration and leaves a file of the old one here.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest
from records import target, write

from conformance.model.records import SCHEMA_VERSION
from conformance.model.verdicts import Verdict
from harness.commandline.command import FAILED
from harness.commandline.main import main
from reports.analysis.effects.changed import Group
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.upgrade import upgrade
from reports.render.site.build import render
from reports.store.results import load

HERE = Path(__file__).parent
FIRST = HERE / "results_of_schema_1.jsonl.xz"


def test_every_schema_version_has_its_file() -> None:
    named = {path.name for path in HERE.glob("results_of_schema_*")}
    assert named == {f"results_of_schema_{n}.jsonl.xz" for n in range(1, SCHEMA_VERSION + 1)}


def test_results_of_the_first_schema_are_read_as_they_were_judged() -> None:
    results = load([FIRST])
    assert results.notes == ()
    assert Counter(outcome.verdict for outcome in results.outcomes.values()) == Counter(
        {
            Verdict.CONFORMS: 5,
            Verdict.KNOWN_DEVIATION: 7,
            Verdict.REMOVED: 2,
            Verdict.NOT_APPLICABLE: 10,
        }
    )
    faults = [run.cell.fault for o in results.outcomes.values() for run in o.runs]
    assert {fault.kind for fault in faults if fault} == {"hung"}
    assert all(t.cores is None and t.packages == {} for t in results.targets)


def test_results_of_the_first_schema_are_shown_with_what_they_lack() -> None:
    site = render(load([FIRST]))
    assert "not recorded" in site["targets.html"]
    assert "hangs" in site["clauses/errors.barriers.hand-made-and-sync.html"]
    assert any(path.startswith("upgrade/") for path in site)


def test_effects_are_derived_from_results_of_the_first_schema() -> None:
    results = load([FIRST])
    ends = (("legacy_pmap@0.9.0", "--from"), ("new_pmap@0.12.0.1", "--to"))
    old, new = (side(results, text, option) for text, option in ends)
    found = upgrade(Effects(results), old, new)
    assert found.compared > 0
    assert {group for group, _ in found.groups} <= set(Group)


@pytest.mark.parametrize("command", [("results", "summary"), ("report", "site")])
def test_a_newer_schema_is_refused_with_one_line_and_nothing_is_written(
    command: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = write(tmp_path / "new.jsonl", [target() | {"schema": SCHEMA_VERSION + 1, "flux": 3}])
    options = ["-o", str(tmp_path / "site")] if "site" in command else []
    assert main([*command, str(FIRST), str(newer), *options]) == FAILED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(rf"schema {SCHEMA_VERSION + 1}\b.*\b{SCHEMA_VERSION}\b", said)
    assert "newer" in said
    assert not (tmp_path / "site").exists()


def test_a_compressed_file_cut_short_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.jsonl.xz"
    cut.write_bytes(FIRST.read_bytes()[:-40])
    assert main(["results", "summary", str(cut)]) == FAILED
    assert "whole xz file" in capsys.readouterr().err
    first = json.loads(lzma.decompress(FIRST.read_bytes()).splitlines()[0])
    assert (first["kind"], first["schema"]) == ("target", 1)
