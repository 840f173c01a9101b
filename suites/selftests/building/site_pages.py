"""Helpers of the site's tests: results from records, and pages as a browser reads them."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from records import Record, claim, clause, target, write

from reports.store.results import Results, load

_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
HEAD = [target(), claim("migrate-pmap.errors"), clause("errors.a")]


def loaded(folder: Path, *files: list[Record]) -> Results:
    """Each list of records written to a file of its own, and all of them read."""
    return load([write(folder / f"{i}.jsonl", records) for i, records in enumerate(files)])


def results_of(*records: Record) -> Results:
    """The results of one file with these records."""
    with tempfile.TemporaryDirectory() as folder:
        return loaded(Path(folder), list(records))


class Tags(HTMLParser):
    """Every start tag with its attributes, and the text outside of tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


class _Reader(HTMLParser):
    """Builds the tree of a page's elements."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("page")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = SubElement(self.open[-1], tag, {name: value or "" for name, value in attrs})
        if tag not in _VOID:
            self.open.append(one)

    def handle_endtag(self, tag: str) -> None:
        if tag in (one.tag for one in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        parent = self.open[-1]
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + data
        else:
            parent.text = (parent.text or "") + data


def tree(page: str) -> Element:
    """Return the elements of a page, to be searched with ElementTree's paths."""
    reader = _Reader()
    reader.feed(page)
    return reader.root


def part(page: Element | str, id: str) -> Element:
    """Return the element of this id; AssertionError if a page has none."""
    root = tree(page) if isinstance(page, str) else page
    found = root.find(f".//*[@id='{id}']")
    assert found is not None, f"no element has the id {id}"
    return found


def section(page: Element | str, id: str) -> Element:
    """Return the element around that of this id, which is most often a section's heading."""
    root = tree(page) if isinstance(page, str) else page
    part(root, id)
    around = root.find(f".//*[@id='{id}']/..")
    assert around is not None
    return around


def classed(root: Element, name: str) -> list[Element]:
    """Return the elements of a class, in their order."""
    return [one for one in root.iter() if name in one.get("class", "").split()]


def text_in(root: Element) -> str:
    """Return the text below an element, with single spaces."""
    return " ".join("".join(root.itertext()).split())


def links_in(root: Element) -> list[str]:
    """Return the addresses of the links below an element, in their order."""
    return [one.get("href", "") for one in root.iter("a")]


def search_rows(site: Mapping[str, str]) -> list[list[Any]]:
    """The rows of the search's index, from all of its files."""
    parts = sorted(name for name in site if name.startswith("search-"))
    lines = (line.rstrip(",") for name in parts for line in site[name].splitlines())
    return [json.loads(line) for line in lines if line.startswith("[")]


def shared_lines(site: Mapping[str, str]) -> dict[str, str]:
    """The lines that lists of several pages share, and these lists' keys of lines, by key."""
    parts = (site[name] for name in site if name.startswith("lines-"))
    rows = (row.rstrip(",") for part in parts for row in part.splitlines())
    return dict(json.loads(row) for row in rows if row.startswith("["))


def with_lines(site: Mapping[str, str]) -> dict[str, str]:
    """The site as a browser shows it, whose script writes the shared lines into the lists."""
    lines = shared_lines(site)

    def filled(found: re.Match[str]) -> str:
        return f">{''.join(lines[key] for key in lines[found[1]].split())}<"

    return {
        path: re.sub(r' data-lines="?([^">]*)"?><', filled, text)
        if path.endswith(".html")
        else text
        for path, text in site.items()
    }


def goal(page: str, href: str) -> tuple[str, str]:
    """The file of the site and the anchor to which a relative address on `page` leads."""
    path, _, anchor = href.partition("#")
    return (normpath(join(dirname(page), path)) if path else page), anchor
