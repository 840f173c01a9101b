"""The feed of regressions: an entry for each version of JAX in which something became worse.

What is worse is derived from the cells of two neighbouring versions of one report. Ids and dates
come from the versions and the runs, so that the same results make the same feed and a reader of it
is told of nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from reports.comparing.changes import CompareError, Comparison, Group, Kind, compare
from reports.reading.records import Target
from reports.reading.results import Results
from reports.site.text import plain
from reports.summary import printable

_ID = "tag:pmap-conformance,2026"
_SHOWN = 40  # regressions named in an entry, those of most cells first


def feed(results: Results) -> str:
    """The feed, newest version first; without entries where no two versions can be compared."""
    entries = [
        _entry(results, before, after, found)
        for before, after in _neighbours(results.targets)
        if (found := _compared(results, before, after)) is not None and found.of(Kind.REGRESSION)
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            '<feed xmlns="http://www.w3.org/2005/Atom">',
            f"<id>{_ID}:regressions</id>",
            "<title>pmap conformance: what became worse</title>",
            "<subtitle>For each version of JAX, against the one before</subtitle>",
            "<author><name>pmap conformance</name></author>",
            f"<updated>{_when(results.targets)}</updated>",
            '<link rel="alternate" type="text/html" href="index.html"/>',
            *reversed(entries),
            "</feed>",
            "",
        ]
    )


def _neighbours(targets: Sequence[Target]) -> Iterator[tuple[Target, Target]]:
    """Each version with the one before it on the same platform."""
    there = [one for one in targets if one.jax and not one.unavailable]
    for platform in dict.fromkeys(one.platform for one in there):
        here = [one for one in there if one.platform == platform]
        yield from pairwise(here)


def _compared(results: Results, before: Target, after: Target) -> Comparison | None:
    try:
        return compare(results, results, results.labels[before.key], results.labels[after.key])
    except CompareError:  # they have no cell in common
        return None


def _entry(results: Results, before: Target, after: Target, found: Comparison) -> str:
    groups = found.of(Kind.REGRESSION)
    old, new = results.labels[before.key], results.labels[after.key]
    title = f"{new}: {len(groups)} regression{'s' * (len(groups) > 1)} against {old}"
    items = "".join(f"<li>{_line(results, one)}</li>" for one in groups[:_SHOWN])
    more = len(groups) - _SHOWN
    left = f"<p>And {more} more.</p>" if more > 0 else ""
    content = (
        f"<p>{found.cells(Kind.REGRESSION)} of {found.compared} cells became worse.</p>"
        f"<ul>{items}</ul>{left}"
    )
    return "\n".join(
        [
            "<entry>",
            f"<id>{_ID}:{_part(after)}:since:{_part(before)}</id>",
            f"<title>{_text(title)}</title>",
            f"<updated>{_when([after])}</updated>",
            '<link rel="alternate" type="text/html" href="versions.html"/>',
            f'<content type="html">{_text(content)}</content>',
            "</entry>",
        ]
    )


def _line(results: Results, group: Group) -> str:
    claim = results.claims.get(group.claim)
    said = plain(group.title)
    what = f"{plain(claim.statement)} Seen: {said}" if claim else said
    many = len(group.clauses)
    return f"{escape(what)} ({many} program{'s' * (many > 1)})"


def _part(target: Target) -> str:
    """A target as a part of an id: nothing in it needs escaping."""
    words = f"{target.platform or 'any'}-{target.jax or target.target}"
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in words)


def _when(targets: Sequence[Target]) -> str:
    """When the last of the runs began; the beginning of time where none is known."""
    return _text(
        max((one.started for one in targets if one.started), default="1970-01-01T00:00:00Z")
    )


def _text(text: str) -> str:
    return escape(printable(text), quote=False)
