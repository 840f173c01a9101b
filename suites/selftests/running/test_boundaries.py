"""The version ranges of known issues and entries: between two published releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import real
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from published import published_versions

import reports
from conformance.catalogue.causes import load_causes
from conformance.judging.deviations import load_all
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP
from harness.running import boundaries
from harness.running.boundaries import Boundary, Cell
from reports.store.releases import released

PUBLISHED = {Version(text) for text in published_versions()}
FIRST = Version("0.7.0")  # the first release that is published
RELEASED = {version for text in released() if (version := Version(text)) >= FIRST}


def bounds(text: str) -> Iterator[Version]:
    """The releases that a range of versions begins, ends or consists of."""
    for one in SpecifierSet(text):
        yield Version(one.version.removesuffix(".*"))


def unsettled(text: str) -> list[str]:
    """The bounds of a range that are no published release: nobody saw what is on either side."""
    return [str(one) for one in bounds(text) if one not in PUBLISHED]


def test_every_release_since_the_first_is_published() -> None:
    assert PUBLISHED == RELEASED


def test_each_known_issue_begins_and_ends_at_a_published_release() -> None:
    found = {
        slug: unsettled(one.jax)
        for slug, cause in load_causes().items()
        for one in cause.shows
        if unsettled(one.jax)
    }
    assert found == {}


def test_each_entry_begins_and_ends_at_a_published_release() -> None:
    found = {
        entry.where: unsettled(jax)
        for entry in load_all()
        for jax in (entry.jax, *(jax for jax, _ in entry.cells))
        if unsettled(jax)
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (">=0.11.1,<0.11.2", []),
        ("<0.8", []),
        (">=0.9.3", ["0.9.3"]),
        ("==0.10.*,!=0.10.7", ["0.10.7"]),
    ],
)
def test_a_bound_that_is_no_release_is_found(text: str, found: list[str]) -> None:
    assert unsettled(text) == found


# --- Run on both sides

MATRIX = Path(reports.__file__).parent / "published" / "matrix.jsonl.xz"
RELEASES = ("0.8.0", "0.10.0", "0.9.0")
ONE, OTHER = Cell("a.one", "new_pmap", "1x8"), Cell("a.other", "new_pmap", "1x8")


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ("", []),
        ("<0.9", [("0.8.0", "0.9.0")]),
        (">=0.9.0,<0.10", [("0.8.0", "0.9.0"), ("0.9.0", "0.10.0")]),
        (">=0.7.2", []),
    ],
)
def test_a_bound_lies_between_adjacent_releases(
    versions: str, found: list[tuple[str, str]]
) -> None:
    assert list(boundaries.bounds(versions, RELEASES)) == found


def test_legacy_pmap_has_bounds_while_jax_has_the_switch() -> None:
    both = (LEGACY_PMAP, NEW_PMAP)
    shows = SimpleNamespace(jax=">=0.9.0,<0.10", implementation=both, topology=("1x8",))
    cause: Any = SimpleNamespace(slug="some-issue", shows=(shows,))
    found = [
        (cell.implementation, one.before, one.after)
        for one in boundaries.of_programs([cause], RELEASES)
        for cell in one.cells
    ]
    assert found == [
        (LEGACY_PMAP, "0.8.0", "0.9.0"),
        (NEW_PMAP, "0.8.0", "0.9.0"),
        (NEW_PMAP, "0.9.0", "0.10.0"),
    ]


@pytest.mark.parametrize(
    ("one", "ran", "missing"),
    [
        (False, {ONE: "8 9", OTHER: "8 9"}, []),
        (False, {ONE: "8 9", OTHER: "9"}, [(OTHER, "8")]),
        (True, {ONE: "9", OTHER: "8 9"}, []),
        (True, {ONE: "9", OTHER: "8"}, [(ONE, "8")]),  # each on one side is not one on both
        (True, {OTHER: "8"}, [(OTHER, "9")]),
    ],
)
def test_a_bound_is_settled_by_runs_on_both_sides(
    one: bool, ran: dict[Cell, str], missing: list[tuple[Cell, str]]
) -> None:
    bound = Boundary("an entry", "8", "9", (ONE, OTHER), one=one)
    assert bound.missing({(c, jax) for c, some in ran.items() for jax in some.split()}) == missing


def test_between_adjacent_releases_there_is_none() -> None:
    assert boundaries.between("0.8.0", "0.9.0", RELEASES) == []
    assert boundaries.between("0.8.0", "0.10.0", RELEASES) == ["0.9.0"]


def test_every_bound_is_settled_by_published_cells() -> None:
    """`pmap-conformance dev boundaries reports/published/matrix.jsonl.xz` lists them all."""
    entries, clauses = real.entries(), real.catalogue().clauses
    ran = set(boundaries.run_cells(MATRIX))
    found = [
        *boundaries.of_entries(entries, clauses, tuple(released())),
        *boundaries.of_causes(load_causes(), entries, clauses, tuple(released())),
    ]
    assert found
    assert [boundaries.line(one, ran) for one in found if one.missing(ran)] == []
