"""The first page: the upgrade chooser, the pmap of each version, the known issues, all upgrades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.libraries import load_libraries
from reports.render.site import uses
from reports.render.site.entries import side_words
from reports.render.site.issues import Grid, grid
from reports.render.site.names import Link, implementation_words
from reports.render.site.page import Asset, Page
from reports.render.site.pairs import Pair
from reports.render.site.platforms import on_one_device, without_results, words
from reports.render.site.question_pages import asked
from reports.render.site.strips import jax_versions
from reports.render.site.subjects import subjects
from reports.render.site.uses import Moment, Use
from reports.store.order import version_order
from reports.store.results import Results

MOST_ISSUES = 10  # rows of a grid on the first page


@dataclass(frozen=True, slots=True)
class Chooser:
    """A table of links: a row per side to come from, a column per version to go to."""

    title: str
    versions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Pair | None, ...]], ...]


@dataclass
class HomeView:
    """The content of the first page."""

    effects: Effects
    pairs: Sequence[Pair]

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of JAX, the oldest first."""
        return tuple(jax_versions(self.effects.results))

    @property
    def uses(self) -> tuple[Use, ...]:
        """What a reader can choose as their use of pmap."""
        return tuple(Use)

    @property
    def libraries(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The libraries on whose versions known issues depend, with the versions examined and
        those in which an issue begins.
        """
        edits = [one for one in rewrites().edits if one.library]
        names = sorted({one.library for one in edits})
        found = [
            *((one.library, one.version) for one in load_libraries()),
            *((one.library, one.since) for one in edits),
        ]
        each = ((name, {number for library, number in found if library == name}) for name in names)
        return tuple((name, tuple(sorted(some, key=version_order))) for name, some in each if some)

    @cached_property
    def timeline(self) -> tuple[Moment, ...]:
        """What legacy and new pmap are in each version: default, by a switch, or removed."""
        return uses.timeline(self.effects.results)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The known issues of each use."""
        return tuple(grid(self.effects, use, MOST_ISSUES) for use in Use)

    @cached_property
    def choosers(self) -> tuple[Chooser, ...]:
        """A table for each pair of implementations."""
        ways: dict[tuple[str, str], list[Pair]] = {}
        for pair in self.pairs:
            ways.setdefault((pair.old.implementation, pair.new.implementation), []).append(pair)
        return tuple(_chooser(*way, some) for way, some in ways.items())

    @property
    def questions(self) -> tuple[Link, ...]:
        """The questions that a page answers."""
        return asked(self.effects.every)

    @property
    def subjects(self) -> tuple[Link, ...]:
        """The pages about one subject."""
        return tuple(Link(one.title, one.path) for one in subjects(self.effects.results))

    def words(self, pair: Pair) -> tuple[str, str]:
        """Return both ends of a pair in words."""
        return side_words(pair.old), side_words(pair.new)


def pages(effects: Effects, pairs: Sequence[Pair]) -> Iterator[Page | Asset]:
    """Yield the first page, on every site, and the script that knows all upgrades."""
    where = _measured(effects.results, effects.every)
    yield Page(
        "index.html",
        "home",
        HomeView(effects, pairs),
        "Upgrade `jax.pmap` code",
        f"What breaks, changes or gets slower between versions of JAX.{where}",
    )
    yield uses.choices(effects, pairs)


def _measured(results: Results, every: Results) -> str:
    """Return what it was measured on, the platform of most cells first, and what was not measured.

    `results` are those of that platform, `every` those of all platforms.
    """
    there = every.platforms
    if not there:
        return ""
    several = any(not topology.startswith("1x") for topology in results.topologies)
    how = "with one process and in real multi-process jobs" if several else "with one process"
    missing = without_results(there)
    nothing = f" No test ran on {words(missing)} yet." if missing else ""
    one = ", on one device" if on_one_device(every, there[1:]) else ""
    also = f"; some also ran on {words(there[1:])}{one}" if there[1:] else ""
    return f" The tests ran on {there[0].upper()}, {how}{also}.{nothing}"


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
