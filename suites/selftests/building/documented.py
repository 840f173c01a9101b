"""The project's pages for its tests: README and `docs/*.md`, with what can be typed from them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reports.render.site.guide import Document, parse

PROJECT = Path(__file__).parents[3]
README = PROJECT / "README.md"
GENERATED = ("command-line.md", "results-format.md")
# Languages of blocks: what is typed into a shell or stands in a job; else what is not typed.
TYPED = ("sh", "yaml", "")
OTHERS = ("python", "py", "toml", "text", "diff")
A_COMMAND = re.compile(r"([A-Z_]+=\S+ )?(pytest|pmap-conformance|tox run) ")
AN_OPTION = re.compile(r"^--[a-z-]+=")
A_LINE = re.compile(r"^ *(?=\S)(?:-? ?run: )?(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language, empty where it is indented, and its text."""

    language: str
    text: str


def pages(*, generated: bool = True) -> list[Path]:
    """README and the pages of `docs`, with those that are generated or without them."""
    found = sorted((PROJECT / "docs").glob("*.md"))
    return [README, *(one for one in found if generated or one.name not in GENERATED)]


def name(page: Path) -> str:
    """The path of a page in the project."""
    return page.relative_to(PROJECT).as_posix()


def document(page: Path) -> Document:
    """A page, parsed as for the site."""
    return parse(page.stem, page.read_text(encoding="utf-8"))


def blocks(page: Path) -> list[Block]:
    """The blocks of code of a page, in order."""
    return [
        Block(token.info.strip() if token.type == "fence" else "", token.content)
        for token in document(page).tokens
        if token.type in ("fence", "code_block")
    ]


def spans(page: Path) -> list[str]:
    """The code spans of a page."""
    return [
        child.content
        for token in document(page).tokens
        for child in token.children or ()
        if child.type == "code_inline"
    ]


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of each command line of a page: of its blocks, and of code spans that are one."""
    for one in blocks(page):
        if one.language in TYPED or (one.language == "text" and A_COMMAND.match(one.text)):
            yield from words_of(one.text)
    for span in spans(page):
        if A_COMMAND.match(span):
            yield from words_of(span)


def words_of(text: str) -> Iterator[list[str]]:
    """The words of each line, with variables as 1 and without what a pipe leads to.

    A word of several words may be a command line too, as after `sh -c`: it is one more.
    """
    for shown in A_LINE.findall(text.replace("\\\n", " ")):
        line = re.sub(r"\$\(\(.*?\)\)|\$\{\{.*?\}\}", "1", shown)
        line = re.sub(r"\$\w+", "1", line).split("|")[0]
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a word of several lines
            words = line.replace("'", " ").split()
        yield [word.removeprefix(".venv/bin/") for word in words]
        for word in words:
            if " " in word:
                yield from words_of(AN_OPTION.sub("", word))


def calls(page: Path, *program: str) -> list[list[str]]:
    """The words that follow a program on a page, wherever in a line it stands."""
    found = []
    for words in command_lines(page):
        for at in range(len(words)):
            if tuple(words[at : at + len(program)]) == program:
                rest = words[at + len(program) :]
                end = next((n for n, word in enumerate(rest) if word in ("||", "&&")), len(rest))
                found.append(rest[:end])
    return found
