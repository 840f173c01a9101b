"""README and `docs`: short enough, linked, current, and with programs and entries that are read."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import documented
import pytest
from documented import PROJECT, README, Block
from markdown_it import MarkdownIt

from conformance.catalogue import causes
from conformance.judging import deviations
from conformance.spec import clause, columns, combining, expectation
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation
from harness.commandline.main import main
from reports.analysis.comparing.entries import load_entries
from reports.analysis.effects.known import load_known
from reports.render.readme import load_changes
from reports.render.site.guide import ORDER

PAGES = documented.pages()
MOST_WORDS = 500
MOST_TERMS = 20
MOST_IMAGE_BYTES = 150_000
PNG = b"\x89PNG\r\n\x1a\n"
DEVICES = "8"
A_PATH = re.compile(r"(conformance|harness|reports|suites|docs|\.github|\.ci)/[a-z0-9_./-]+")

each_page = pytest.mark.parametrize("page", PAGES, ids=documented.name)


def test_the_readme_is_one_screen_with_a_picture() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS
    (image,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    content = (PROJECT / image).read_bytes()
    assert content.startswith(PNG)
    assert len(content) < MOST_IMAGE_BYTES


def test_the_readme_names_five_changes_of_the_guide() -> None:
    guide = documented.document(PROJECT / "docs" / "upgrade.md")
    titles = [one.title for one in load_changes()]
    assert len(titles) == 5
    assert set(titles) <= {one.text for one in guide.headings}
    known = set(causes.load_causes())
    assert {slug for one in load_changes() for slug in one.causes} <= known


@each_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in documented.document(page).links:
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), link
        assert goal.is_relative_to(PROJECT), link
        if anchor:
            assert anchor in {one.anchor for one in documented.document(goal).headings}, link


@each_page
def test_paths_that_are_named_exist(page: Path) -> None:
    for span in documented.spans(page):
        if A_PATH.fullmatch(span):
            assert (PROJECT / span).exists(), span


@pytest.mark.parametrize("page", PAGES[1:], ids=documented.name)
def test_a_page_is_a_heading_a_summary_and_no_raw_html(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = documented.document(page)
    assert [token.type for token in found.tokens[:4:3]] == ["heading_open", "paragraph_open"]
    assert [one.level for one in found.headings].count(1) == 1
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    every = [*tokens, *(child for token in tokens for child in token.children or ())]
    assert [token.content for token in every if token.type.startswith("html")] == []


def test_every_page_has_its_place_among_the_others() -> None:
    assert {page.stem for page in PAGES[1:]} >= set(ORDER)


def test_the_glossary_is_short_and_says_each_word_once() -> None:
    text = (PROJECT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| (?!word)(\w[\w ]*) \|", text, re.MULTILINE)
    assert 10 < len(terms) <= MOST_TERMS
    assert len(set(terms)) == len(terms)


def test_generated_pages_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["dev", "docs", "--check", "-o", str(PROJECT / "docs")])
    assert status == 0, f"run: pmap-conformance dev docs\n{capsys.readouterr().out}"


def test_a_page_that_is_not_current_is_found_and_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "command-line.md").write_text("old", encoding="utf-8")
    assert main(["dev", "docs", "--check", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("differs: ") == len(documented.GENERATED) + 1  # the schema
    assert main(["dev", "docs", "-o", str(tmp_path)]) == 0
    assert main(["dev", "docs", "--check", "-o", str(tmp_path)]) == 0


# Blocks of code


@each_page
def test_blocks_are_of_known_languages_and_parse(page: Path) -> None:
    for one in documented.blocks(page):
        assert one.language in (*documented.TYPED, *documented.OTHERS), one
        if one.language == "python":
            ast.parse(one.text)
        if one.language == "toml":
            tomllib.loads(one.text)


def tables() -> Iterator[Any]:
    """Each TOML block of the page on writing tests, by the table that it is of."""
    for one in documented.blocks(PROJECT / "docs" / "writing-tests.md"):
        if one.language == "toml":
            yield pytest.param(one, id=list(tomllib.loads(one.text))[-1])


LOADERS: dict[str, Callable[[Path], object]] = {
    "deviation": deviations.load,
    "difference": load_entries,
    "change": load_known,
    "shows": causes.load,
}


@pytest.mark.parametrize("block", list(tables()))
def test_entries_of_the_page_on_writing_tests_are_read(block: Block, tmp_path: Path) -> None:
    kind = list(tomllib.loads(block.text))[-1]
    file = tmp_path / "section" / "causes" / "an-entry.toml"
    file.parent.mkdir(parents=True)
    file.write_text(block.text, encoding="utf-8")
    file.with_suffix(".py").write_text("import jax\n", encoding="utf-8")
    assert LOADERS[kind](file)


def test_entries_that_the_page_on_writing_tests_quotes_are_in_their_file() -> None:
    begins = "# in "
    (block,) = (one.values[0] for one in tables() if one.values[0].text.startswith(begins))
    place, _, text = block.text.partition("\n")
    entries = (PROJECT / place.removeprefix(begins)).read_text(encoding="utf-8").split("\n\n")
    assert [one for one in text.strip().split("\n\n") if one not in entries] == []


def test_every_kind_of_entry_is_on_the_page_on_writing_tests() -> None:
    assert {one.id for one in tables()} == set(LOADERS)


A_CALL = re.compile(r"(?:(impl|cluster|place)\.)?([a-z_]+)\(")
OWNERS = {"impl": Implementation, "cluster": Cluster, "place": Place}


def test_calls_on_the_page_on_writing_tests_exist() -> None:
    spans = documented.spans(PROJECT / "docs" / "writing-tests.md")
    calls = [found for span in spans if (found := A_CALL.match(span))]
    assert len(calls) > 15
    for found in calls:
        owner, name = found.groups()
        homes = (OWNERS[owner],) if owner else (expectation, columns, combining, clause)
        assert any(hasattr(home, name) for home in homes), found.string


# Programs


def programs() -> Iterator[Any]:
    """Each program of the pages, with what the block below it says that it prints."""
    for page in PAGES:
        found = documented.blocks(page)
        for at, one in enumerate(found):
            if one.language == "python":
                below = found[at + 1] if at + 1 < len(found) else Block("", "")
                printed = below.text if below.language == "text" else None
                yield pytest.param(one.text, printed, id=f"{page.stem}-{at}")


@pytest.mark.long
@pytest.mark.parametrize(("program", "printed"), list(programs()))
def test_programs_print_what_stands_below_them(program: str, printed: str | None) -> None:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env=own | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": DEVICES},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if printed is not None:
        assert done.stdout == printed
