"""The documentation as pages of the site: `docs/*.md`, rendered with raw HTML disabled.

Headings have the anchors of code hosts, so that one link works in both places. A link to a file
outside the documentation becomes plain text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports.analysis.effects.pairs import Effects
from reports.render.site.page import Page

CONTENTS = "docs.html"
FOLDER = "guide_pages"  # of this package: a link to the project's `docs`
# The order in which a newcomer reads; pages that are not named here follow by name.
ORDER = (
    "getting-started",
    "upgrade",
    "your-code",
    "migration",
    "run-it-yourself",
    "running-tests",
    "writing-tests",
    "clusters",
    "nightly",
    "command-line",
    "results-format",
    "architecture",
    "contributing",
    "glossary",
    "threat-model",
)
_SUFFIX = ".md"
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_OUTPUT = "text"  # the language of a block that is not there to be copied
_TEXT_LENGTH = 400  # characters of a section that the search looks into


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page: its level, its text without markup, and its anchor."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page for the search: its address, its code spans, its first words."""

    title: str
    href: str
    codes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A page of the documentation, parsed."""

    name: str
    tokens: Sequence[Token]

    @property
    def path(self) -> str:
        """The page's path in the site."""
        return f"docs/{self.name}.html"

    @property
    def title(self) -> str:
        """The first heading, without markup."""
        return self.headings[0].text if self.headings else self.name

    @property
    def headings(self) -> tuple[Heading, ...]:
        """The headings, in order."""
        return tuple(
            Heading(int(opens.tag[1:]), _plain(inline), str(opens.attrGet("id")))
            for opens, inline in itertools.pairwise(self.tokens)
            if opens.type == "heading_open"
        )

    @property
    def summary(self) -> str:
        """The first paragraph, without markup."""
        for opens, inline in itertools.pairwise(self.tokens):
            if opens.type == "paragraph_open":
                return _plain(inline)
        return ""

    @property
    def links(self) -> tuple[str, ...]:
        """Return the addresses of its links and images, as written."""
        return tuple(
            str(child.attrGet(name))
            for token in self.tokens
            for child in token.children or ()
            for kind, name in (("link_open", "href"), ("image", "src"))
            if child.type == kind
        )

    @property
    def sections(self) -> Iterator[Section]:
        """Yield what stands under each of its headings of the first two levels."""
        found: list[tuple[Heading, list[Token]]] = []
        own, headings = self.title, iter(self.headings)
        for token in self.tokens:
            if token.type == "heading_open":
                heading = next(headings)
                if heading.level <= 2:
                    found.append((heading, []))
            elif token.type in ("inline", "fence") and found:
                found[-1][1].append(token)
        for heading, tokens in found:
            title = own if heading.level == 1 else f"{own}: {heading.text}"
            codes = (
                child.content
                for token in tokens
                for child in token.children or ()
                if child.type == "code_inline"
            )
            text = " ".join(" ".join(map(_plain, tokens[1:])).split())[:_TEXT_LENGTH]
            href = f"{self.path}#{heading.anchor}" if heading.level > 1 else self.path
            yield Section(title, href, tuple(dict.fromkeys(codes)), text)


@dataclass(frozen=True, slots=True)
class GuideView:
    """The data of the template: the HTML of a page, and its sections' headings."""

    document: Document | None
    others: tuple[Document, ...]

    @property
    def headings(self) -> tuple[Heading, ...]:
        """The headings of the second level: the page's contents."""
        return (
            tuple(one for one in self.document.headings if one.level == 2) if self.document else ()
        )

    @property
    def html(self) -> str:
        """The page below its first heading and summary, which are in the page's head."""
        if self.document is None:
            return ""
        names = frozenset(one.name for one in self.others)
        return _Renderer(names).render(_after_head(self.document.tokens))


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the contents and all pages; nothing if the documentation is not installed."""
    found = documents()
    if not found:
        return
    yield Page(
        CONTENTS,
        "guide",
        GuideView(None, found),
        "Documentation",
        "How to look up an upgrade, run the tests yourself, and add to them.",
    )
    for one in found:
        yield Page(one.path, "guide", GuideView(one, found), one.title, one.summary)


@functools.cache
def sections() -> tuple[Section, ...]:
    """Return what the search indexes in the documentation."""
    return tuple(part for one in documents() for part in one.sections)


@functools.cache
def documents() -> tuple[Document, ...]:
    """The pages of the documentation, in the order of reading."""
    folder = resources.files("reports.render.site").joinpath(FOLDER)
    if not folder.is_dir():
        return ()
    files = [one for one in folder.iterdir() if one.name.endswith(_SUFFIX)]
    return tuple(sorted(map(_read, files), key=lambda one: (_place(one.name), one.name)))


def _read(file: Traversable) -> Document:
    return parse(file.name.removesuffix(_SUFFIX), file.read_text(encoding="utf-8"))


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def parse(name: str, text: str) -> Document:
    """Return the page `name` of this Markdown, with an anchor on each heading."""
    tokens = _markdown().parse(text)
    used: dict[str, int] = {}
    for opens, inline in itertools.pairwise(tokens):
        if opens.type == "heading_open":
            slug = anchor(_plain(inline))
            count = used.get(slug, 0)
            used[slug] = count + 1
            opens.attrSet("id", f"{slug}-{count}" if count else slug)
    return Document(name, tuple(tokens))


def anchor(heading: str) -> str:
    """Return the anchor of a heading's text, as code hosts make it."""
    return _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _plain(token: Token) -> str:
    """The text of an inline token without markup, or of a block of code."""
    if token.type == "fence":
        return token.content
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in token.children or ()
        if child.type in ("text", "code_inline", "softbreak", "hardbreak")
    )


def _after_head(tokens: Sequence[Token]) -> list[Token]:
    """The tokens after the first heading and the paragraph that follows it."""
    left = list(tokens)
    for kind in ("heading", "paragraph"):
        if left and left[0].type == f"{kind}_open":
            left = left[3:]
    return left


class _Renderer:
    """Renders tokens to HTML, with links for the site."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._markdown = _markdown()
        for rule in ("fence", "code_block", "table_open", "table_close"):
            self._markdown.add_render_rule(rule, getattr(self, f"_{rule}"))

    def render(self, tokens: Sequence[Token]) -> str:
        """The HTML of the tokens."""
        linked = [
            token.copy(children=list(self._linked(token.children))) if token.children else token
            for token in tokens
        ]
        html: str = self._markdown.renderer.render(linked, self._markdown.options, {})
        return html

    def _linked(self, children: Sequence[Token]) -> Iterator[Token]:
        """The tokens of a line, without links to files that are no pages of the site."""
        dropped: list[bool] = []
        for child in children:
            if child.type == "link_open":
                href = self._address(str(child.attrGet("href")))
                dropped.append(not href)
                if not href:
                    continue
                away = {"rel": "noreferrer"} if href.startswith("https://") else {}
                child = child.copy(attrs={"href": href, **away})
            elif child.type == "link_close" and dropped.pop():
                continue
            yield child

    def _address(self, href: str) -> str:
        """The address on the site; empty where the site has no such file."""
        if href.startswith(("https://", "#")):
            return href
        path, hash, anchor = href.partition("#")
        name = path.removesuffix(_SUFFIX)
        known = path.endswith(_SUFFIX) and name in self._names
        return f"{name}.html{hash}{anchor}" if known else ""

    @staticmethod
    def _fence(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
        text = f"<pre>{escape(tokens[at].content)}</pre>"
        if tokens[at].info == _OUTPUT:
            return f"{text}\n"
        return f'<div class="copied">{text}</div>\n'

    _code_block = _fence

    @staticmethod
    def _table_open(*_: Any) -> str:
        return '<div class="scroll" tabindex="0"><table>\n'

    @staticmethod
    def _table_close(*_: Any) -> str:
        return "</table></div>\n"
