"""What changes on an upgrade, as pages list it: a line for each entry, in groups.

A line leads to the page of the known issue, which has program, remedies and evidence; where there
is none, to the smallest test that shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from reports.effects.changed import ONE, SEVERAL, Entry, Group, Upgrade
from reports.effects.edits import describe_edit
from reports.effects.pairs import Side, cell_of
from reports.effects.plan import by_weight, usage
from reports.effects.upgrade_text import counted, notes, where
from reports.reading.results import Results
from reports.site.names import (
    cause_path,
    cell_path,
    implementation_words,
)

EVERYWHERE, _PLACES = "all", ("one", "several")


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry; `places` are classes by which a page filters, `parts` those of the same defect.

    `edit` is what averts it, where the page does not say so elsewhere.
    """

    effect: str
    title: str
    href: str
    notes: tuple[str, ...]
    where: str
    places: str
    example: str
    usage: str
    edit: str
    ran_before: bool
    parts: tuple[EntryView, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """How many causes and programs a group has, `of`: all, or those on topologies of one sort."""

    of: str
    causes: int
    programs: int

    @property
    def says(self) -> str:
        """The counts in words."""
        return f"{counted(self.causes, 'issue')}, {counted(self.programs, 'test')}"


@dataclass(frozen=True, slots=True)
class GroupView:
    """One question about an upgrade and its entries."""

    anchor: str
    effect: str
    title: str
    counts: tuple[Counted, ...]
    entries: tuple[EntryView, ...]

    @property
    def counted(self) -> tuple[tuple[str, str], ...]:
        """The counts with the classes by which a page shows one; no class where all are equal."""
        if self.places or len({one.says for one in self.counts}) == 1:
            return (("", self.counts[0].says),)
        return tuple((f"for-{one.of}", one.says) for one in self.counts)

    @property
    def places(self) -> str:
        """The classes by which a page filters: where it has anything at all."""
        return places_class({one.of for one in self.counts if one.causes and one.of in _PLACES})


def side_words(side: Side) -> str:
    """A side as a reader says it."""
    return f"{implementation_words(side.implementation)} on JAX {side.jax}"


def group_views(results: Results, found: Upgrade) -> tuple[GroupView, ...]:
    """The groups of an upgrade that have entries, in order; what is likely first in each."""
    groups = []
    for group, entries in found.groups:
        folded = found.folded(group)
        parts = {id(one): some for one, some in folded}
        groups.append(
            GroupView(
                anchor=group_anchor(group),
                effect=min((e.effect for e in entries), key=lambda e: e.gravity).value,
                title=group.heading,
                counts=tuple(
                    _counted(results, [(one, *some) for one, some in folded], of)
                    for of in (EVERYWHERE, *_PLACES)
                ),
                entries=tuple(
                    entry_view(results, found, one, parts[id(one)])
                    for one in by_weight(results, (one for one, _ in folded))
                ),
            )
        )
    return tuple(groups)


def _counted(results: Results, defects: Sequence[Sequence[Entry]], of: str) -> Counted:
    wanted = {"one": ONE, "several": SEVERAL}.get(of, "")
    facts = [
        {
            results.clauses[one.clause].fact or one.clause
            for entry in entries
            if not wanted or wanted in entry.matters
            for one in entry.seen
            if not wanted or wanted in one.matters
        }
        for entries in defects
    ]
    return Counted(of, sum(map(bool, facts)), sum(map(len, facts)))


def entry_view(
    results: Results, found: Upgrade, entry: Entry, parts: Iterable[Entry] = ()
) -> EntryView:
    """An entry as a line, with those of the same defect below it."""
    return EntryView(
        effect=entry.effect.value,
        title=entry.title,
        href=entry_href(results, found, entry),
        notes=tuple(notes(entry)),
        where=where(entry),
        places=places_class(filtered(entry)),
        example="" if entry.cause is not None else entry.example.felt.sentence,
        usage=usage(results, entry).words,
        edit=describe_edit(entry),
        ran_before=entry.ran_before,
        parts=tuple(entry_view(results, found, one) for one in parts),
    )


def entry_href(results: Results, found: Upgrade, entry: Entry) -> str:
    """Where an entry is told whole."""
    if entry.cause is not None:
        return cause_path(entry.cause.cause)
    return _example(results, found, entry)


def _example(results: Results, found: Upgrade, entry: Entry) -> str:
    """The cell of the smallest test that shows it, on the page of its clause."""
    key = cell_of(results, entry.smallest, entry.example.topology, found.new)
    return cell_path(key)


def group_anchor(group: Group) -> str:
    """Where a group stands on its page."""
    return group.name.lower().replace("_", "-")


def places_class(places: Collection[str]) -> str:
    """The class of what a page hides in one of its choices; empty where both show it."""
    return f"only-{next(iter(places))}" if len(places) == 1 else ""


def filtered(one: Entry) -> set[str]:
    """With how many processes a page shows something: where it matters."""
    return {"one" if place == ONE else "several" for place in one.matters}
