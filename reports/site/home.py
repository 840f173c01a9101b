"""The first page: which upgrade, its worst findings, and the ways on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from reports.effects.changed import Group, Upgrade
from reports.effects.pairs import LEGACY, NEW, Effects
from reports.effects.upgrade import upgrade
from reports.reading.order import version_order
from reports.reading.results import Results
from reports.site import errata
from reports.site.entries import entry_anchor, side_words
from reports.site.names import Link, implementation_words
from reports.site.page import Page
from reports.site.pairs import Pair
from reports.site.subjects import subjects

_ACCELERATORS = ("cuda", "tpu")
WORST = 5  # findings on the first page


@dataclass(frozen=True, slots=True)
class Worst:
    """One finding in a line."""

    effect: str
    title: str
    topologies: str
    href: str


@dataclass(frozen=True, slots=True)
class Chooser:
    """A table of links: a row per side to come from, a column per version to go to."""

    title: str
    versions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Pair | None, ...]], ...]


@dataclass
class HomeView:
    """What the first page shows; the usual upgrade is from the oldest legacy to the newest pmap."""

    effects: Effects
    pairs: Sequence[Pair]

    @cached_property
    def usual(self) -> Pair | None:
        """The pair that most readers come for; None where nothing can be compared."""
        asked = [
            pair
            for pair in self.pairs
            if (pair.old.implementation, pair.new.implementation) == (LEGACY, NEW)
        ]

        def far(pair: Pair) -> tuple[object, ...]:
            return version_order(pair.new.jax), -self._place(pair)

        return max(asked or self.pairs, key=far, default=None)

    @cached_property
    def found(self) -> Upgrade | None:
        return upgrade(self.effects, self.usual.old, self.usual.new) if self.usual else None

    @cached_property
    def worst(self) -> tuple[Worst, ...]:
        """The gravest findings of the usual upgrade."""
        if self.found is None or self.usual is None:
            return ()
        entries = [
            whole
            for group in Group
            if group is not Group.REPAIRED
            for whole, _ in self.found.folded(group)
        ]
        return tuple(
            Worst(
                one.effect.value,
                one.title,
                ", ".join(one.topologies),
                f"{self.usual.path}#{entry_anchor(one)}",
            )
            for one in entries[:WORST]
        )

    @cached_property
    def choosers(self) -> tuple[Chooser, ...]:
        """A table for each way: from one implementation to another."""
        ways: dict[tuple[str, str], list[Pair]] = {}
        for pair in self.pairs:
            ways.setdefault((pair.old.implementation, pair.new.implementation), []).append(pair)
        return tuple(_chooser(*way, some) for way, some in ways.items())

    @property
    def subjects(self) -> tuple[Link, ...]:
        """The pages that tell all of one subject."""
        return tuple(Link(one.title, one.path) for one in subjects(self.effects.results))

    @property
    def errata(self) -> str:
        """The page of what documents err in; empty where no document is looked at."""
        return errata.PAGE if self.effects.results.claims else ""

    def words(self, pair: Pair) -> tuple[str, str]:
        """Both ends of a pair in words."""
        return side_words(pair.old), side_words(pair.new)

    def _place(self, pair: Pair) -> int:
        return self.pairs.index(pair)


def pages(effects: Effects, pairs: Sequence[Pair]) -> Iterator[Page]:
    """The first page, in every site."""
    where = _measured(effects.results)
    yield Page(
        "index.html",
        "home",
        HomeView(effects, pairs),
        "Moving off the old `jax.pmap`",
        f"What changes between versions of JAX for code that uses pmap{where}.",
    )


def _measured(results: Results) -> str:
    """On what it was measured, and on what nothing was."""
    there = {t.platform for t in results.targets if t.platform and not t.unavailable}
    if not there:
        return ""
    several = any(not topology.startswith("1x") for topology in results.topologies)
    how = "in clusters of real processes" if several else "in one process"
    missing = [name for name in _ACCELERATORS if not any(p.startswith(name) for p in there)]
    nothing = f"; nothing is measured on {' and '.join(missing)} yet" if missing else ""
    return f", measured on {', '.join(sorted(there))} {how}{nothing}"


def _chooser(old: str, new: str, some: Sequence[Pair]) -> Chooser:
    versions = tuple(sorted({pair.new.jax for pair in some}, key=version_order))
    by_old: dict[str, dict[str, Pair]] = {}
    for pair in some:
        by_old.setdefault(pair.old.jax, {})[pair.new.jax] = pair
    return Chooser(
        title=f"From {implementation_words(old)} to {implementation_words(new)}",
        versions=versions,
        rows=tuple(
            (jax, tuple(by_old[jax].get(version) for version in versions))
            for jax in sorted(by_old, key=version_order)
        ),
    )
