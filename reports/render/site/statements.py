"""The documents with what was seen of each statement, and what they err in: of one reading."""

from __future__ import annotations

from collections.abc import Iterator

from reports.analysis.effects.pairs import Effects
from reports.render.site import documents, errata
from reports.render.site.page import Asset, Page


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """The pages of documents, and the one of their errors with its texts."""
    found = documents.documents(effects.results)
    yield from documents.pages(effects.results, found)
    yield from errata.pages(effects, found)
