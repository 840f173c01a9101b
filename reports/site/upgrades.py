"""The pages about effects: an upgrade for each sensible pair, the first page, versions, hazards.

They share one table of effects, which costs more to make than all of the pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reports.effects.pairs import LEGACY, NEW, SHARD_MAP, Effects, Side, sides
from reports.effects.told import missing
from reports.effects.upgrade import Upgrade, upgrade
from reports.reading.order import version_order
from reports.reading.results import Results
from reports.site import feed, hazards, home, versions
from reports.site.entries import GroupView, group_views, side_words
from reports.site.names import safe_name
from reports.site.page import Asset, Page

_NEWER = {LEGACY: (NEW, SHARD_MAP), NEW: (NEW, SHARD_MAP)}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides between which a reader may upgrade, and the page about it."""

    old: Side
    new: Side
    path: str


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


def pairs(effects: Effects) -> Iterator[Pair]:
    """The pairs between which one upgrades: to the same or a later JAX, on one platform."""
    there = sides(effects.results)
    many = {(one.implementation, one.jax): 0 for one in there}
    for one in there:
        many[one.implementation, one.jax] += 1
    for old in there:
        for new in there:
            if _sensible(old, new) and _comparable(effects, old, new):
                names = (_name(one, many[one.implementation, one.jax] > 1) for one in (old, new))
                yield Pair(old, new, f"upgrade/{'--'.join(names)}.html")


def _sensible(old: Side, new: Side) -> bool:
    if new.implementation not in _NEWER.get(old.implementation, ()):
        return False
    if old.target.platform != new.target.platform:
        return False
    before, after = version_order(old.jax), version_order(new.jax)
    return before < after or (before == after and old.implementation == LEGACY)


def _comparable(effects: Effects, old: Side, new: Side) -> bool:
    return any(
        one is not None
        and one.digest is not None
        and other is not None
        and other.digest is not None
        for one, other in zip(effects.column(old), effects.column(new), strict=True)
    )


def _name(side: Side, with_platform: bool) -> str:
    platform = f"-{side.target.platform}" if with_platform else ""
    return safe_name(f"{side.implementation}-{side.jax}{platform}")
