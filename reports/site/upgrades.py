"""The pages about effects: an upgrade for each sensible pair, the first page, versions, hazards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reports.effects.changed import Group, Upgrade
from reports.effects.hazards import hazards
from reports.effects.pairs import Effects
from reports.effects.upgrade import upgrade
from reports.effects.upgrade_text import missing
from reports.site import feed, home, versions
from reports.site import hazards as hazard_pages
from reports.site.edits import EditsView, edits_view
from reports.site.entries import EntryView, GroupView, group_anchor, group_views, side_words
from reports.site.page import Asset, Page
from reports.site.pairs import Pair, pairs

# What differs without an error or a warning, and does not do what it did.
_SILENT = (Group.WRONG_NUMBERS, Group.MOVES_MORE, Group.MEMORY, Group.LIES)


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

    @cached_property
    def edits(self) -> EditsView:
        return edits_view(self.effects.results, self.found)

    @property
    def silent(self) -> tuple[EntryView, ...]:
        """What differs without a word in programs that ran before, the gravest first."""
        there = {group.anchor: group.entries for group in self.groups}
        wholes = (one for group in _SILENT for one in there.get(group_anchor(group), ()))
        some = (one for whole in wholes for one in (whole, *whole.parts))
        return tuple(one for one in some if one.ran_before)

    @property
    def missing(self) -> str:
        return missing(self.found)


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """Everything that is told by effects."""
    some = tuple(pairs(effects))
    yield from home.pages(effects, some)
    # To one side one after the other, in one process: what is told of a row is told of several.
    for pair in sorted(some, key=lambda pair: str(pair.new)):
        old, new = side_words(pair.old), side_words(pair.new)
        yield Page(
            pair.path,
            "upgrade",
            UpgradeView(effects, pair),
            f"From {old} to {new}",
            f"What changes for programs that run under {old} when they run under {new}.",
        )
    dangers = hazards(effects)
    yield from versions.pages(effects, dangers)
    yield from hazard_pages.pages(effects, dangers)
    yield from feed.pages(effects)
