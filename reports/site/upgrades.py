"""The pages about effects: an upgrade for each sensible pair, the first page, versions, hazards.

They share one table of effects, which costs more to make than all of the pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reports.effects.pairs import Effects
from reports.effects.told import missing
from reports.effects.upgrade import Upgrade, upgrade
from reports.reading.results import Results
from reports.site import feed, hazards, home, versions
from reports.site.entries import GroupView, group_views, side_words
from reports.site.page import Asset, Page
from reports.site.pairs import Pair, pairs


@dataclass
class UpgradeView:
    """An upgrade, computed when its page is rendered."""

    effects: Effects
    pair: Pair

    @cached_property
    def found(self) -> Upgrade:
        return upgrade(self.effects, self.pair.old, self.pair.new)

    @cached_property
    def groups(self) -> tuple[GroupView, ...]:
        return group_views(self.effects.results, self.found)

    @property
    def missing(self) -> str:
        return missing(self.found)


def pages(results: Results) -> Iterator[Page | Asset]:
    """Everything that is told by effects."""
    effects = Effects(results)
    some = tuple(pairs(effects))
    yield from home.pages(effects, some)
    for pair in some:
        old, new = side_words(pair.old), side_words(pair.new)
        yield Page(
            pair.path,
            "upgrade",
            UpgradeView(effects, pair),
            f"From {old} to {new}",
            f"What changes for programs that run under {old} when they run under {new}.",
        )
    yield from versions.pages(effects)
    yield from hazards.pages(effects)
    yield from feed.pages(effects)
