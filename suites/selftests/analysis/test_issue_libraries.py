"""What follows the version of a library: which changes an upgrade may bring, and what raises."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from real import entries

from reports.analysis.effects.rewrites import rewrites
from reports.analysis.issues.libraries import library_changes, outdated
from reports.analysis.libraries import Pair, Use
from reports.analysis.public_names import Name

GONE = "AttributeError: jax.device_put_replicated is deprecated"
NAMES = (Name("jax.device_put_replicated", "name", gone="0.10.0"),)
PAIRS = (
    Pair("flax", "0.12.0", "0.8.0", "3.11"),
    Pair("flax", "0.12.4", "0.9.0", "3.11"),
    Pair("flax", "0.12.6", "0.10.2", "3.11", True, uses={"replicate": Use(error=GONE)}),
    Pair("flax", "0.12.8", "0.10.2", "3.11", uses={"replicate": Use()}),
    Pair("flax", "0.12.12", "0.12.0", "3.13", uses={"replicate": Use()}),
)


def test_changes_are_listed_that_the_newest_version_beside_the_jax_has() -> None:
    assert library_changes(PAIRS, "0.8.0") == ()
    assert [one.since for one in library_changes(PAIRS, "0.9.0")] == ["0.12.3"]
    assert [one.since for one in library_changes(PAIRS, "0.10.2")] == ["0.12.3", "0.12.5", "0.12.5"]


def test_an_old_version_raises_from_the_release_on_that_removed_the_name() -> None:
    [one] = outdated(PAIRS, NAMES, "0.9.2", "0.10.2")

    assert (one.raises, one.works, one.jax, one.functions) == (
        "0.12.6",
        "0.12.8",
        "0.10.0",
        ("replicate",),
    )
    assert one.sentence == (
        "With JAX 0.10.0 or later, `replicate` of flax up to 0.12.6 raises AttributeError. "
        "flax 0.12.8 works with JAX 0.10.2."
    )
    # A version works beside a JAX with which it was run, and beside no other.
    assert [outdated(PAIRS, NAMES, "0.9.2", jax)[0].works for jax in ("0.10.0", "0.12.0")] == [
        "",
        "0.12.12",
    ]
    assert outdated(PAIRS, NAMES, "0.8.0", "0.9.2") == ()
    assert outdated(PAIRS, NAMES, "0.10.0", "0.12.0") == ()


def test_an_edit_of_a_library_begins_where_the_entries_of_its_issue_do() -> None:
    for one in rewrites().edits:
        ranges = [
            entry.packages[one.library]
            for entry in entries()
            if entry.cause in one.causes and one.library in entry.packages
        ]
        assert bool(ranges) == bool(one.library)
        for found in ranges:
            assert one.since in SpecifierSet(str(found))
