"""The clauses that `--clause` selects, and the folders in which a section's clauses may be."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from judged import clause_of
from processes import HANGS_S, outside_pytest
from records import doubled

import conformance.sections
from conformance.catalogue import loading
from conformance.catalogue.loading import Catalogue, CatalogueError
from conformance.spec.expectation import returns

IDS = (
    "errors.lowered",
    "errors.lowered.map",
    "errors.lowered.map-again",
    "errors.lowering",
    "inputs.views",
    "inputs.views-of-rows",
)
CATALOGUE = Catalogue({id: clause_of(returns(doubled), id) for id in IDS})


@pytest.mark.parametrize(
    ("case", "words", "ids"),
    [
        ("a_clause_alone", ["errors.lowered.map-again"], IDS[2:3]),
        ("a_clause_and_not_what_begins_so", ["errors.lowered"], IDS[0:1]),
        ("a_section", ["errors"], IDS[0:4]),
        ("dotted_words_or_hyphens", ["inputs.views"], IDS[4:5]),
        ("part_of_a_word_with_a_hyphen", ["inputs.views-of"], IDS[5:6]),
        ("several", ["inputs.views-of-rows", "errors.lowering"], (IDS[3], IDS[5])),
        ("one_twice", ["errors.lowered.map", "errors", "errors"], IDS[0:4]),
        ("a_pattern", ["errors.lowered.*"], IDS[1:3]),
        ("a_pattern_amid_words", ["*.views*"], IDS[4:6]),
        ("nothing", [], IDS),
    ],
)
def test_chooses(case: str, words: list[str], ids: tuple[str, ...]) -> None:
    chosen = CATALOGUE.beginning(words)
    assert list(chosen.clauses) == list(ids)
    assert all(chosen.clauses[id] is CATALOGUE.clauses[id] for id in ids)


@pytest.mark.parametrize(
    ("case", "word", "offered"),
    [
        ("part_of_a_word", "errors.lower", "errors.lowered, errors.lowering"),
        ("a_letter_too_many", "inputs.viewss", "inputs.views"),
        ("a_pattern_that_matches_none", "errors.lowed.*", "errors.lowered"),
        ("a_family_of_another_section", "input.views", "inputs.views"),
    ],
)
def test_refuses_and_offers(case: str, word: str, offered: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        CATALOGUE.beginning(["errors.lowered", word])
    said, _, rest = str(refused.value).partition("; did you mean ")
    assert word in said
    assert set(offered.split(", ")) <= set(rest.rstrip("?").split(", "))


def test_refuses_what_is_like_nothing() -> None:
    with pytest.raises(CatalogueError, match=r"the id 'Q', [^;?]*$"):
        CATALOGUE.beginning(["Q"])


def test_what_is_chosen_knows_only_the_runs_that_are_left() -> None:
    assert CATALOGUE.runs["errors.lowered"] == IDS
    chosen = CATALOGUE.beginning(["inputs"])
    assert chosen.runs["inputs.views"] == IDS[4:]
    assert chosen.sections() == ["inputs"]


# Folders

CLAUSE = """
from conformance.spec.clause import clause
from conformance.spec.columns import everywhere
from conformance.spec.expectation import not_applicable

@clause("{id}", claim="migrate-pmap.incompatible-devices", expect=everywhere(not_applicable("no")))
def probe(impl, cluster):
    "A probe."
"""
COUNT = itertools.count()

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a section with a clause of that id in each module; the package's name."""
    monkeypatch.setattr(conformance.sections, "__path__", [str(tmp_path)])
    before = set(sys.modules)

    def section(name: str, **ids: str) -> str:
        (tmp_path / name).mkdir()
        for module, id in {"__init__": "", **ids}.items():
            text = CLAUSE.format(id=id) if id else ""
            (tmp_path / name / f"{module}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return f"conformance.sections.{name}"

    yield section
    for name in set(sys.modules) - before:
        if name.startswith("conformance.sections."):
            del sys.modules[name]


def letters() -> str:
    """A section's name that no other test has used, as modules are loaded once."""
    return "sample_" + "".join("abcdefghij"[int(digit)] for digit in str(next(COUNT)))


def test_a_clause_stands_in_its_sections_folder(write: Write) -> None:
    name = letters()
    package = write(name, first=f"{name}.first", second=f"{name}.second.again")
    assert list(loading.load([package]).clauses) == [f"{name}.first", f"{name}.second.again"]


def test_a_clause_in_another_sections_folder_is_refused(write: Write) -> None:
    name = letters()
    package = write(name, first=f"{name}.first", other="errors.first")
    said = f"clause errors.first stands in the section '{name}': begin its id with {name}. or move"
    with pytest.raises(CatalogueError, match=said):
        loading.load([package])


def test_a_folder_that_begins_as_the_section_is_another(write: Write) -> None:
    name = letters()
    package = write(f"{name}_more", first=f"{name}.first")
    with pytest.raises(CatalogueError, match=f"section '{name}_more'"):
        loading.load([package])


@pytest.mark.parametrize(
    ("module", "section"),
    [
        ("conformance.sections.errors", "errors"),
        ("conformance.sections.errors.lowered", "errors"),
        ("conformance.sections.errors.deeper.still", "errors"),
        ("conformance.sections", None),
        ("faulty.faults", None),
        ("a.conformance.sections.errors", None),
    ],
)
def test_only_folders_of_sections_are_sections(module: str, section: str | None) -> None:
    assert loading._section_of(ModuleType(module)) == section


def test_who_names_a_clause_asks_for_no_self_test() -> None:
    root = Path(__file__).resolve().parents[3]
    listed = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q"),
            *("suites/test_errors.py", "suites/selftests/judging/test_deviations.py"),
            *("--clause", "errors.lowered.one-process-map"),
        ],
        cwd=root,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    items = [line for line in listed.stdout.splitlines() if "::" in line]
    assert any("errors.lowered.one-process-map" in item for item in items), listed.stdout
    assert all(item.startswith("suites/test_errors.py::") for item in items), items


def test_a_path_that_does_not_exist_is_refused_before_anything_starts() -> None:
    words = [sys.executable, "-m", "pytest", "-n", "2", "suites/test_nothing.py::test_nothing"]
    ran = subprocess.run(
        words,
        cwd=Path(__file__).parents[3],
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "called suites/test_nothing.py" in ran.stderr
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
