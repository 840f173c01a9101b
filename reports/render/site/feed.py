"""The feed of regressions: an entry for each version of JAX in which something became worse.

It compares neighbouring versions of one implementation. Ids and dates come from the versions and
the runs, so that equal results give an equal feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

from conformance.model.records import Target
from reports.analysis.effects.changed import Entry, Group
from reports.analysis.effects.pairs import Effects, Side, sides
from reports.analysis.effects.upgrade import upgrade
from reports.render.site.names import implementation_words
from reports.render.site.page import Asset
from reports.render.site.text import plain
from reports.render.text.summary import printable
from reports.store.order import VersionOrder, version_order

PAGE = "feed.xml"
_ID = "tag:pmap-conformance,2026"
_BEFORE_ALL_RUNS = "1970-01-01T00:00:00+00:00"
# What is better, and what says nothing of the version before.
_NO_CHANGE_FOR_WORSE = (Group.REPAIRED, Group.FIX_FAILS)


@dataclass(frozen=True, slots=True)
class Worse:
    """What became worse in a version under one implementation, most severe first."""

    old: Side
    new: Side
    entries: tuple[Entry, ...]


def pages(effects: Effects) -> Iterator[Asset]:
    """Yield the feed, on every site."""
    yield Asset(PAGE, lambda: feed(tuple(worse(effects)), effects.results.targets))


def worse(effects: Effects) -> Iterator[Worse]:
    """Yield each version with anything worse than the one before it."""
    there = sides(effects.results)
    for _, some in groupby(there, key=lambda one: one.implementation):
        for old, new in pairwise(some):
            if bad := tuple(filter(_became_worse, upgrade(effects, old, new).entries)):
                yield Worse(old, new, bad)


def _became_worse(entry: Entry) -> bool:
    """Return whether it differed in the version before; what was not run there does not count."""
    return entry.group not in _NO_CHANGE_FOR_WORSE and entry.compared


def feed(found: Sequence[Worse], targets: Sequence[Target]) -> str:
    """Return the feed as Atom: an entry per version, the newest first."""

    def version(worse: Worse) -> VersionOrder:
        return version_order(worse.new.jax)

    ordered = sorted(found, key=version)
    entries = [_entry(list(some)) for _, some in groupby(ordered, key=version)]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            '<feed xmlns="http://www.w3.org/2005/Atom">',
            f"<id>{_ID}:regressions</id>",
            "<title>pmap conformance: what became worse</title>",
            "<subtitle>Each version of JAX against the one before</subtitle>",
            "<author><name>pmap conformance</name></author>",
            f"<updated>{_when(targets)}</updated>",
            '<link rel="alternate" type="text/html" href="versions.html"/>',
            *reversed(entries),
            "</feed>",
            "",
        ]
    )


def _entry(found: Sequence[Worse]) -> str:
    new = found[0].new
    count = sum(len(one.entries) for one in found)
    title = f"jax {new.jax}: {count} thing{'s' * (count != 1)} became worse"
    content = "".join(
        f"<h3>{escape(implementation_words(one.new.implementation))}, against jax "
        f"{escape(one.old.jax)}</h3><ul>{''.join(map(_line, one.entries))}</ul>"
        for one in found
    )
    return "\n".join(
        [
            "<entry>",
            f"<id>{_ID}:{_part(new.target)}</id>",
            f"<title>{_text(title)}</title>",
            f"<updated>{_when([new.target])}</updated>",
            '<link rel="alternate" type="text/html" href="versions.html"/>',
            f'<content type="html">{_text(content)}</content>',
            "</entry>",
        ]
    )


def _line(entry: Entry) -> str:
    many = f"{entry.programs} program{'s' * (entry.programs != 1)}"
    where = ", ".join(entry.topologies)
    text = f"<b>{escape(entry.group.value)}</b>: {escape(plain(entry.title))}"
    return f"<li>{text} ({many}, {escape(where)})</li>"


def _part(target: Target) -> str:
    """Return a target as a part of an id, without characters that need escaping."""
    words = f"{target.platform or 'any'}:{target.jax or target.target}"
    return "".join(c if c.isalnum() or c in ".:-" else "-" for c in words)


def _when(targets: Sequence[Target]) -> str:
    """Return the start of the last run."""
    began = (one.started for one in targets if one.started)
    return _text(max(began, default=_BEFORE_ALL_RUNS))


def _text(text: str) -> str:
    return escape(printable(text), quote=False)
