"""The file of what each known issue changes: of the published matrix, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from conformance.catalogue.causes import load_causes
from conformance.catalogue.finds import SEVERITIES
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.published import FILE, PublishedError, changes_between, load_changes
from reports.store.results import load

MATRIX = FILE.parent / "matrix.jsonl.xz"
OLD, NEW = "legacy_pmap@0.7.2", "new_pmap@0.12.0.1"


def test_it_is_of_the_published_matrix() -> None:
    digest = hashlib.sha256(MATRIX.read_bytes()).hexdigest()
    known = json.loads(FILE.read_text())["matrix"]
    assert known == digest, f"pmap-conformance dev changes {MATRIX}"


def test_it_names_known_issues_and_severities() -> None:
    found = load_changes(OLD, NEW)
    assert {one.cause for one in found} <= {*load_causes()}
    assert {one.severity for one in found} <= {*SEVERITIES}
    assert "merge-option-gone" in {one.cause for one in found}


def test_each_side_is_there_once_and_each_upgrade_changes_something() -> None:
    """A release that ran on a second platform too is its first platform's alone."""
    raw = json.loads(FILE.read_text())
    assert len(raw["sides"]) == len(set(raw["sides"]))
    assert [pair for pair, some in raw["pairs"].items() if not some and "legacy" in pair] == []


def test_nothing_changes_from_a_side_to_itself() -> None:
    assert load_changes(NEW, NEW) == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "new_pmap@0.1",
            NEW,
            "--from new_pmap@0.1: the published matrix has new_pmap on JAX 0.7.0",
        ),
        (OLD, "pmap@0.9.0", "--to pmap@0.9.0: write IMPLEMENTATION@VERSION; there are legacy_pmap"),
        (NEW, OLD, f"--to {OLD}: name the JAX of {NEW} or a newer one"),
    ],
)
def test_a_side_that_was_not_run_is_refused(old: str, new: str, says: str) -> None:
    with pytest.raises(PublishedError, match=says):
        load_changes(old, new)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PublishedError, match="none"):
        load_changes(OLD, NEW, tmp_path / "none")


@pytest.mark.long
@pytest.mark.parametrize("new", [NEW, "shard_map@0.12.0.1"])
def test_it_says_what_the_matrix_says(new: str) -> None:
    results = load([MATRIX])
    old_side, new_side = side(results, OLD, "--from"), side(results, new, "--to")
    assert changes_between(Effects(results), old_side, new_side) == load_changes(OLD, new)
