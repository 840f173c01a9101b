"""Names that JAX removed: how they are listed, what became of each, and the published list."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from published import published_versions

from conformance.worker.public_names import GONE, THERE, Listed, Modules, arguments, defined, look
from reports.analysis.public_names import Name, Names, NamesError, as_text, history, load_names

SOURCE = """
import os
import typing
from collections import OrderedDict as OrderedDict
from collections import deque
try:
    from collections import ChainMap as ChainMap
except ImportError:
    ChainMap = None
if typing.TYPE_CHECKING:
    typed = 1
A, (B, _c) = 1, (2, 3)
note: int = 1
_deprecations = {"old": ("old is deprecated: use new", 1), "older": ("older is gone", None)}

def function(a, b=1, *, c): ...
def _private(): ...
class Class: ...

def __getattr__(name):
    import warnings
    message, value = _deprecations.get(name, (f"module 'made_up' has no attribute {name!r}", None))
    if value is None:
        raise AttributeError(message)
    warnings.warn(message, DeprecationWarning)
    return value
"""
NAMES = {"OrderedDict", "ChainMap", "typed", "A", "B", "note", "old", "older", "function", "Class"}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "made_up.py").write_text(SOURCE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("made_up")
    del sys.modules["made_up"]


def test_names_are_those_that_a_module_gives_out(made_up: ModuleType) -> None:
    assert defined(made_up) == NAMES


@pytest.mark.parametrize(
    ("listed", "state", "warning", "error"),
    [
        (Listed("name", "", "made_up.A"), THERE, "", ""),
        (Listed("name", "", "made_up.old"), THERE, "DeprecationWarning: old is deprecated", ""),
        (Listed("name", "", "made_up.older"), GONE, "", "AttributeError: older is gone"),
        (Listed("name", "", "made_up.A.real"), THERE, "", ""),
        (Listed("name", "", "made_up.typed"), GONE, "", "AttributeError: module 'made_up' has no"),
        (Listed("name", "", "jax.no_such.x"), GONE, "", "ModuleNotFoundError: No module named 'ja"),
        (Listed("argument", "made_up.function", "b"), THERE, "", ""),
        (Listed("argument", "made_up.function", "d"), GONE, "", "TypeError: function() got an un"),
        (Listed("argument", "made_up.gone", "d"), "unknown", "", ""),
        (Listed("module", "", "made_up"), THERE, "", ""),
        (Listed("module", "", "jax.no_such"), GONE, "", "ModuleNotFoundError: No module named"),
        (Listed("option", "", "jax_enable_x64"), THERE, "", ""),
        (Listed("option", "", "jax_no_such"), GONE, "", "AttributeError: Unrecognized config"),
    ],
)
def test_a_name_is_used(
    made_up: ModuleType, listed: Listed, state: str, warning: str, error: str
) -> None:
    found = look(Modules({"made_up": made_up}, {}, {"made_up": ""}), listed)
    assert found.state == state
    assert found.warning.startswith(warning)
    assert bool(found.warning) == bool(warning)
    assert found.error.startswith(error)
    assert bool(found.error) == bool(error)


def test_a_function_of_any_keyword_has_no_known_arguments() -> None:
    assert arguments(lambda a, **more: None) is None
    assert arguments(lambda a, *, b=1: None) == ("a", "b")


class Made(NamedTuple):
    """A release, made up."""

    jax: str
    looked: Mapping[tuple[str, str, str], tuple[str, str, str]]
    same: tuple[tuple[str, ...], ...] = ()


def there(warning: str = "") -> tuple[str, str, str]:
    return (THERE, warning, "")


def gone(error: str) -> tuple[str, str, str]:
    return (GONE, "", error)


USUAL = "AttributeError: module 'jax' has no attribute 'f'"
F = ("name", "", "jax.f")
VERSIONS = ("0.7.2", "0.8.0", "0.9.0", "0.10.0")


def life(*looked: tuple[str, str, str]) -> tuple[Name, ...]:
    return history([Made(v, {F: one}) for v, one in zip(VERSIONS, looked, strict=True)]).names


def test_what_became_of_a_name() -> None:
    assert life(there(), there(), there(), there()) == ()
    assert life(there(), there(), there(), gone(USUAL)) == (
        Name("jax.f", "name", gone="0.10.0", error=USUAL),
    )
    assert life(gone(USUAL), there(), there("W: use g"), gone(USUAL)) == (
        Name("jax.f", "name", "", "0.8.0", "0.10.0", "0.9.0", "W: use g", USUAL),
    )
    assert life(there(), gone(USUAL), gone(USUAL), there()) == ()
    assert life(there(), there(), there(), there("W: use g")) == (
        Name("jax.f", "name", warned="0.10.0", warning="W: use g"),
    )
    assert Names(VERSIONS, ()).gone_since(Name("jax.f", "name", gone="0.8.0")) == "0.8.0"
    # None of the releases has it: of interest only where JAX itself says what became of it.
    assert life(*4 * (gone(USUAL),)) == ()
    (explained,) = life(*4 * (gone("AttributeError: f was removed: use g"),))
    assert explained.gone == "0.7.2"
    assert Names(VERSIONS, (explained,)).gone_since(explained) == "0.7.2 or earlier"
    # What one release cannot import says nothing.
    (found,) = life(there(), there(), ("unknown", "", ""), gone(USUAL))
    assert found.gone == "0.10.0"


def test_another_name_of_the_object_is_one_that_the_newest_release_has() -> None:
    names = ("jax.f", "jax.g", "jax.h")
    keys = [("name", "", one) for one in names]
    old = Made("0.8.0", dict.fromkeys(keys, there()), (names,))
    new = Made("0.9.0", dict(zip(keys, (gone(USUAL), there(), gone("x")), strict=True)))
    assert history([old, new]).names[0].same == ("jax.g",)


def test_an_upgrade_removes_what_the_first_has_and_the_second_has_not() -> None:
    found = Names(
        VERSIONS,
        (
            Name("jax.a", "name", gone="0.8.0"),
            Name("jax.b", "name", gone="0.10.0"),
            Name("jax.c", "name", first="0.9.0", gone="0.10.0"),
            Name("jax.d", "name", warned="0.8.0", warning="W"),
        ),
    )

    def between(old: str, new: str) -> list[str]:
        return [one.name for one in found.gone_between(old, new)]

    assert between("0.7.2", "0.10.0") == ["jax.a", "jax.b"]
    assert between("0.8.0", "0.9.0") == []
    assert between("0.9.0", "0.10.0") == ["jax.b", "jax.c"]
    assert between("0.9", "0.9.0") == []
    assert between("0.9.0", "1x2") == ["jax.b", "jax.c"]  # a results file may say anything
    assert between("no version", "0.10.0") == []


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    found = Names(VERSIONS, (Name("jax.f", "name", gone="0.9.0", same=("jax.g",)),))
    file.write_text(as_text(found), "utf-8")
    assert load_names(file) == found
    (tmp_path / "other.json").write_text('{"schema": 99}', "utf-8")
    with pytest.raises(NamesError, match="schema 99"):
        load_names(tmp_path / "other.json")


def test_the_published_list_is_sorted_and_of_the_published_releases() -> None:
    found = load_names()
    assert [one.text for one in found.names] == sorted(one.text for one in found.names)
    assert found.releases == published_versions()
    assert not [one for one in found.names if re.search(r"/(root|home|work|tmp)/", one.error)]


@pytest.mark.parametrize(
    ("text", "since", "warned"),
    [
        ("jax.lax.pvary", "0.10.0", "0.8.2"),
        ("jax.extend.core.primitives.xla_pmap_p", "0.10.0", ""),
        ("jax.make_mesh(axis_shapes=)", "0.11.1", ""),
        ("jax.experimental.shard_map.shard_map(auto=)", "0.8.0", ""),
        ("jax_pmap_shmap_merge", "0.10.0", "0.9.0"),
        ("jax.util", "0.8.0", ""),
    ],
)
def test_names_that_users_miss_are_in_it(text: str, since: str, warned: str) -> None:
    (found,) = (one for one in load_names().names if one.text == text)
    assert (found.gone, found.warned) == (since, warned)
