"""The pages of messages and the search index, from one reading of all cells."""

from __future__ import annotations

from collections.abc import Iterator

from reports.analysis.effects.pairs import Effects
from reports.analysis.errors.messages import messages, recorded_messages
from reports.render.site import errors, searching
from reports.render.site.known import safe_table
from reports.render.site.page import Asset, Page
from reports.render.site.uses import Use


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """Yield the pages of messages and the search index."""
    results = effects.results
    found = messages(results, effects.once.to(recorded_messages))
    yield from errors.pages(results, found, safe_table(effects, Use.PMAP).advice)
    yield from searching.pages(effects, found)
