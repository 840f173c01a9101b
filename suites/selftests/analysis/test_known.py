"""The entries that say what explains a change between two cells which both conform."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.catalogue.causes import load_causes
from conformance.catalogue.claims import load_claims
from conformance.model.records import TargetKey
from reports.analysis.comparing.entries import EntryError
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.known import Known, load_known
from reports.store.outcomes import CellKey

ENTRY = """[[change]]
effect = "raises"
shape = "raises ValueError: no *"
clause = ["errors.a*", "errors.b"]
new_in = "shard_map"
topology = "2x*"
cause = "one-cause"
"""
SHAPE = "raises ValueError: no devices"


def entry(tmp_path: Path, text: str = ENTRY) -> Known:
    file = tmp_path / "known.toml"
    file.write_text(text)
    [one] = load_known(file)
    return one


@pytest.mark.parametrize(
    ("effect", "shape", "clause", "implementation", "topology", "matches"),
    [
        (Effect.RAISES, SHAPE, "errors.a", "shard_map", "2x2", True),
        (Effect.RAISES, SHAPE, "errors.a.more", "shard_map", "2x1", True),
        (Effect.RAISES, SHAPE, "errors.b", "shard_map", "2x2", True),
        (Effect.OTHER_ERROR, SHAPE, "errors.a", "shard_map", "2x2", False),
        (Effect.RAISES, f"first: {SHAPE}", "errors.a", "shard_map", "2x2", False),
        (Effect.RAISES, SHAPE, "errors.b.more", "shard_map", "2x2", False),
        (Effect.RAISES, SHAPE, "errors.a", "new_pmap", "2x2", False),
        (Effect.RAISES, SHAPE, "errors.a", "shard_map", "1x8", False),
    ],
)
def test_an_entry_is_about_one_effect_of_one_shape_in_its_cells(
    tmp_path: Path,
    effect: Effect,
    shape: str,
    clause: str,
    implementation: str,
    topology: str,
    matches: bool,
) -> None:
    key = CellKey(clause, TargetKey("jax==0.9.0", "0.9.0", "cpu"), implementation, topology)
    assert entry(tmp_path).matches(ShownEffect(effect, "", "first call", shape), key) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[change]", "not valid TOML"),
        ("[change]", r"only \[\[change\]\] entries are allowed"),
        ("change = [1]", r"entry 1: entries are written \[\[change\]\]"),
        (f"{ENTRY}review = 1", "unknown key review; remove it"),
        (ENTRY.replace("shape", "#"), "shape is missing"),
        (ENTRY.replace('"raises"', '"fails"'), "entry 1: no effect is called fails; there are "),
        (ENTRY.replace("shard_map", "old"), "no new_in is called old; there are legacy_pmap, "),
        (ENTRY.replace('"2x*"', "[]"), "topology must be a text, or several in a list"),
        (ENTRY.replace('"one-cause"', "3"), "cause must be a text$"),
        (ENTRY.replace("cause", "#"), "give either a cause or a claim"),
        (f'{ENTRY}claim = "a"\nsays = "b"', "give either a cause or a claim"),
        (f'{ENTRY}says = "b"', "says needs a claim"),
        (ENTRY.replace("cause", "claim"), "says needs a claim"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EntryError, match=message) as error:
        entry(tmp_path, text)
    assert "known.toml" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EntryError, match=r"none\.toml: .*No such file"):
        load_known(tmp_path / "none.toml")


def test_the_entries_name_what_exists() -> None:
    entries = load_known()
    assert entries
    assert {one.cause for one in entries} - {""} <= set(load_causes())
    assert {one.claim for one in entries} - {""} <= set(load_claims().claims)
