"""The pairs of sides between which a reader may upgrade, each with a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.analysis.effects.pairs import Effects, Side, sides
from reports.render.site.names import safe_name
from reports.store.order import LEGACY, NEW, NEW_BY_DEFAULT, SHARD_MAP, version_order

_NEWER = {LEGACY: (NEW, SHARD_MAP), NEW: (NEW, SHARD_MAP), SHARD_MAP: (SHARD_MAP,)}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides between which a reader may upgrade, and the page about it."""

    old: Side
    new: Side
    path: str


def pairs(effects: Effects) -> Iterator[Pair]:
    """Yield the pairs of an upgrade: to the same or a later JAX."""
    there = sides(effects.results)
    for old in there:
        for new in there:
            if _sensible(old, new) and _comparable(effects, old, new):
                yield Pair(old, new, f"upgrade/{_name(old)}--{_name(new)}.html")


def _sensible(old: Side, new: Side) -> bool:
    if new.implementation not in _NEWER.get(old.implementation, ()):
        return False
    before, after = version_order(old.jax), version_order(new.jax)
    if old.implementation == NEW and before < NEW_BY_DEFAULT:
        return False  # asked for by a switch in one release, and there is nothing to move off
    return before < after or (before == after and old.implementation == LEGACY)


def _comparable(effects: Effects, old: Side, new: Side) -> bool:
    return any(
        one is not None
        and one.digest is not None
        and other is not None
        and other.digest is not None
        for one, other in zip(effects.column(old), effects.column(new), strict=True)
    )


def _name(side: Side) -> str:
    return safe_name(f"{side.implementation}-{side.jax}")
