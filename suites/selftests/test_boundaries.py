"""Where a known issue or an entry begins and ends: between two releases that are published."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.catalogue.causes import load_causes
from conformance.judging.deviations import load_all
from reports.reading.releases import released

TOX = configparser.ConfigParser(interpolation=None)
TOX.read(Path(__file__).resolve().parents[2] / "tox.ini")
PUBLISHED = {
    Version(word)
    for tier in ("full", "core")
    for word in re.findall(r"jax==(\S+)", TOX["published"][tier])
}
RELEASED = {Version(text) for text in released()}


def bounds(text: str) -> Iterator[Version]:
    """The releases that a range of versions begins, ends or consists of."""
    for one in SpecifierSet(text):
        yield Version(one.version.removesuffix(".*"))


def unsettled(text: str) -> list[str]:
    """The bounds of a range that are no published release: nobody saw what is on either side."""
    return [str(one) for one in bounds(text) if one not in PUBLISHED]


def test_every_release_is_published() -> None:
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
