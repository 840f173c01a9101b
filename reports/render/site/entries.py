"""The changes of an upgrade as pages list them: a line for each entry, in groups.

A line links to the page of the known issue, which has program, remedies and evidence; without one,
to the smallest test that shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance.commandline.counting import counted
from reports.analysis.effects.changed import Entry, Group, Upgrade
from reports.analysis.effects.pairs import Side, cell_of
from reports.analysis.effects.plan import by_weight
from reports.render.site.names import cause_path, cell_path, implementation_words
from reports.render.text.upgrade import notes, where
from reports.store.results import Results
from reports.store.shown import ONE, SEVERAL

EVERYWHERE, _PLACES = "all", ("one", "several")


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry; `places` are classes for filtering, a `part` is of the defect above it."""

    effect: str
    title: str
    href: str
    notes: tuple[str, ...]
    where: str
    places: str
    example: str
    part: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """How many changes a group has, in total or for one kind of topology; a defect is one.

    Not how many tests: a test with several issues would count several times.
    """

    place: str
    causes: int

    @property
    def words(self) -> str:
        """The count in words."""
        return counted(self.causes, "change")


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group of an upgrade's changes and its entries."""

    anchor: str
    effect: str
    title: str
    counts: tuple[Counted, ...]
    lines: tuple[EntryView, ...]

    @property
    def entries(self) -> tuple[EntryView, ...]:
        """The lines without the parts of a defect."""
        return tuple(one for one in self.lines if not one.part)

    @property
    def counted(self) -> tuple[tuple[str, str], ...]:
        """The counts with the classes by which a page shows one; no class where all are equal."""
        if self.places or len({one.words for one in self.counts}) == 1:
            return (("", self.counts[0].words),)
        return tuple((f"for-{one.place}", one.words) for one in self.counts)

    @property
    def places(self) -> str:
        """The classes for filtering."""
        return places_class(
            {one.place for one in self.counts if one.causes and one.place in _PLACES}
        )


def side_words(side: Side) -> str:
    """Return a side as a reader says it."""
    return f"{implementation_words(side.implementation)} on JAX {side.jax}"


def group_views(results: Results, found: Upgrade) -> tuple[GroupView, ...]:
    """Return the groups of an upgrade that have entries, in order; likely entries first."""
    groups = []
    for group, entries in found.groups:
        folded = found.folded(group)
        parts = {id(one): some for one, some in folded}
        groups.append(
            GroupView(
                anchor=group_anchor(group),
                effect=min((e.effect for e in entries), key=lambda e: e.rank).value,
                title=group.heading,
                counts=tuple(
                    _counted([(one, *some) for one, some in folded], place)
                    for place in (EVERYWHERE, *_PLACES)
                ),
                lines=tuple(
                    entry_view(results, found, line, part=line is not one)
                    for one in by_weight(results, (one for one, _ in folded))
                    for line in (one, *parts[id(one)])
                ),
            )
        )
    return tuple(groups)


def _counted(defects: Sequence[Sequence[Entry]], place: str) -> Counted:
    wanted = {"one": ONE, "several": SEVERAL}.get(place, "")
    shown = (any(not wanted or wanted in one.matters for one in some) for some in defects)
    return Counted(place, sum(shown))


def entry_view(results: Results, found: Upgrade, entry: Entry, *, part: bool = False) -> EntryView:
    """Return an entry as a line."""
    return EntryView(
        effect=entry.effect.value,
        title=entry.title,
        href=entry_href(results, found, entry),
        notes=tuple(notes(entry)),
        where=where(entry),
        places=places_class(filtered(entry)),
        example="" if entry.cause is not None else entry.example.shown.sentence,
        part=part,
    )


def entry_href(results: Results, found: Upgrade, entry: Entry) -> str:
    """Return the address of an entry's full description."""
    if entry.cause is not None:
        return cause_path(entry.cause.cause)
    return _example(results, found, entry)


def _example(results: Results, found: Upgrade, entry: Entry) -> str:
    """Return the address of the cell of the smallest test that shows it."""
    key = cell_of(results, entry.smallest, entry.example.topology, found.new)
    return cell_path(key)


def group_anchor(group: Group) -> str:
    """Return the anchor of a group."""
    return group.name.lower().replace("_", "-")


def places_class(places: Collection[str]) -> str:
    """The class of what a page hides in one of its choices; empty where both show it."""
    return f"only-{next(iter(places))}" if len(places) == 1 else ""


class _Placed(Protocol):
    @property
    def places(self) -> str: ...


def counted_places(some: Sequence[_Placed]) -> tuple[tuple[str, int], ...]:
    """Return how many lines a page shows: of all, and in each of its choices."""
    hidden = {"one": "only-several", "several": "only-one"}
    each = ((place, sum(one.places != css for one in some)) for place, css in hidden.items())
    return (("all", len(some)), *each)


def filtered(entry: Entry) -> set[str]:
    """Return for how many processes a page shows something: for which it matters."""
    return {"one" if place == ONE else "several" for place in entry.matters}
