"""Uses of JAX by libraries, release by release: records, the file, its tables."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from published import published_versions
from records import cause

from conformance.model.records import Cause
from conformance.worker.library_use import MODULES, USES, run
from harness.running.libraries import LIBRARIES
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.libraries import (
    LibrariesError,
    Pair,
    Use,
    as_text,
    from_records,
    load_libraries,
    outgrown,
)
from reports.render.site.libraries import tables

RECORDS: list[dict[str, Any]] = [
    {"library": "flax", "version": "0.12.6", "jax": "0.10.0", "python": "3.11.7", "uses": {}},
    {
        "library": "flax",
        "version": "0.12.0",
        "jax": "0.9.0",
        "python": "3.11.7",
        "pinned": True,
        "uses": {"replicate": {"warning": "DeprecationWarning: x"}, "unreplicate": {}},
    },
    {"library": "chex", "version": "0.1.91", "jax": "0.9.0", "python": "3.11.7", "error": "E: no"},
]


def test_what_an_action_says_warns_of_and_raises() -> None:
    def warn() -> str:
        warnings.warn("old\n  name", DeprecationWarning, stacklevel=1)
        return "on one device"

    def fail() -> None:
        raise ValueError("no")

    assert run(warn)[0] == {"warning": "DeprecationWarning: old name", "note": "on one device"}
    assert run(fail)[0] == {"error": "ValueError: no"}
    assert run(lambda: 1) == ({}, 1)


def test_every_library_has_a_module_and_uses() -> None:
    assert set(LIBRARIES) == {*MODULES} == {*USES}


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = from_records(RECORDS)
    assert [(one.library, one.jax) for one in found] == [
        ("chex", "0.9.0"),
        ("flax", "0.9.0"),
        ("flax", "0.10.0"),
    ]
    assert found[1] == Pair(
        "flax",
        "0.12.0",
        "0.9.0",
        "3.11.7",
        pinned=True,
        uses={"replicate": Use(warning="DeprecationWarning: x"), "unreplicate": Use()},
    )
    file = tmp_path / "libraries.json"
    file.write_text(as_text(found), "utf-8")
    assert load_libraries(file) == found
    (tmp_path / "other.json").write_text('{"schema": 99}', "utf-8")
    with pytest.raises(LibrariesError, match="schema 99"):
        load_libraries(tmp_path / "other.json")


def test_a_table_has_the_newest_jax_first_and_a_column_for_each_use() -> None:
    chex, flax = tables(from_records(RECORDS), {})
    assert (chex.library, chex.uses) == ("chex", ())
    assert [one.jax for one in flax.rows] == ["0.10.0", "0.9.0"]
    assert flax.uses == ("replicate", "unreplicate")


def test_a_table_names_the_known_issues_that_name_its_functions() -> None:
    names = {"one": ("replicate",), "other": ("jax.pmap",)}
    known = {
        slug: convert(cause(slug, tags=[*tags]), Cause, strict=False)
        for slug, tags in names.items()
    }
    chex, flax = tables(from_records(RECORDS), known)

    assert [one.text for one in flax.naming] == ["Title of one"]
    assert chex.naming == ()


def test_a_change_of_a_library_is_dated_by_the_releases_that_it_was_run_with() -> None:
    _, flax = tables(from_records(RECORDS), {})
    change = rewrites().by_cause["replicated-array-unreplicated-whole"]

    assert change.since == "0.12.5"
    assert flax.first_with(change) == "0.10.0"
    assert flax.first_with(replace(change, since="0.12.7")) == ""


def test_the_published_pairs_are_of_every_published_release() -> None:
    found = load_libraries()
    for library in LIBRARIES:
        there = [one.jax for one in found if one.library == library and not one.pinned]
        assert tuple(there) == published_versions()


@pytest.mark.parametrize(
    ("jax", "flax", "devices"),
    [
        ("0.8.3", "0.12.0", 2),
        ("0.8.3", "0.12.6", 1),
        ("0.9.2", "0.12.0", 2),
        ("0.9.2", "0.12.6", 1),
    ],
)
def test_unreplicate_follows_flax_and_not_jax(jax: str, flax: str, devices: int) -> None:
    (found,) = (
        one
        for one in load_libraries()
        if (one.library, one.version, one.jax, one.pinned) == ("flax", flax, jax, True)
    )
    note = found.uses["flax.jax_utils.unreplicate"].note
    assert note.endswith(f"on {devices} of 2 devices")


def test_a_library_that_warns_beside_the_older_jax_is_upgraded_too() -> None:
    warns = {"uses": {"f": {"warning": "Warning: gone soon"}, "g": {}}}
    records = [
        {"library": "flax", "version": "1", "jax": "0.8.3", "python": "3.11", **warns},
        {"library": "flax", "version": "2", "jax": "0.12.0", "python": "3.11", "uses": {"f": {}}},
    ]

    (one,) = outgrown(from_records(records), "0.8.3", "0.12.0")
    assert (one.library, one.old, one.new, one.warns) == ("flax", "1", "2", ("f",))
    assert one.warning == "Warning: gone soon"
    assert outgrown(from_records(records), "0.12.0", "0.8.3") == ()
    same = [records[0], records[1] | {"version": "1"}]
    assert outgrown(from_records(same), "0.8.3", "0.12.0") == ()
