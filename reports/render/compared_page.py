"""Comparisons of runs of a user's function, as one HTML file in the style of the site."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from reports.analysis.usercode.compared import Compared
from reports.analysis.usercode.runs import Found, Json, title_of
from reports.render.site.build import environment
from reports.render.text.compared import Issues, because, explained, headline, verdict
from reports.render.text.difference_words import words_of
from reports.render.text.summary import printable

_TEMPLATE = "compared.html.j2"


@dataclass(frozen=True, slots=True)
class Row:
    """A difference: the field, its two values, the steps in which it shows, and what was seen."""

    field: str
    old: str
    new: str
    steps: str
    seen: str


@dataclass(frozen=True, slots=True)
class Group:
    """The differences that one thing explains; `href` leads to JAX's commit or issue, if any."""

    title: str
    edit: str
    href: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run, and how it differs from the baseline."""

    title: str
    headline: str
    verdict: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A baseline, with the runs that were compared with it."""

    title: str
    headline: str
    runs: tuple[Run, ...]


def part_of(baseline: Json, compared: Sequence[Compared], issues: Issues) -> Part:
    """Return what a page shows of a baseline and the runs compared with it."""
    runs = tuple(
        Run(
            title_of(one.run),
            "" if one.missing else headline(one.run),
            verdict(one),
            tuple(_groups(one, issues)),
        )
        for one in compared
    )
    return Part(title_of(baseline), headline(baseline), runs)


def as_html(function: str, parts: Sequence[Part]) -> str:
    """Return the page of a function's comparisons, which needs no other file."""
    templates = resources.files("reports.render.site") / "templates"
    style = (templates / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = (
        environment()
        .get_template(_TEMPLATE)
        .render(
            function=function,
            parts=parts,
            style=style,
            policy=f"default-src 'none'; style-src 'sha256-{digest}'",
        )
    )
    return printable(text)


def _groups(comparison: Compared, issues: Issues) -> Iterator[Group]:
    for by, groups in explained(comparison.found):
        issue = issues.get(by[0])
        links = issue.links if issue is not None else ()
        yield Group(
            because(by, issues),
            issue.edit if issue is not None else "",
            next((link for link in links if link.startswith("https://")), ""),
            tuple(map(_row, groups)),
        )


def _row(group: Sequence[Found]) -> Row:
    first = group[0]
    steps = ", ".join(dict.fromkeys(one.step for one in group if one.step))
    words = words_of(first)
    return Row(words.field, words.old, words.new, steps, words.seen)
