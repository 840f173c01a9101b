"""The edits of an upgrade as its page lists them: in words, what they avert, what shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.effects.changed import Entry, Group, Upgrade
from reports.effects.edits import Edit, by_title, edits
from reports.effects.told import INSTEAD
from reports.site.entries import entry_anchor, filtered
from reports.site.names import Link, clause_path

# What does not make a program worse that ran: an edit that averts nothing else is folded.
_MINOR = (Group.OTHER_ERROR, Group.LIES, Group.WARNS, Group.TAKEN)


@dataclass(frozen=True, slots=True)
class Averted:
    """One thing that an edit averts, with the effects that it has: (word, anchor, places) each."""

    title: str
    effects: tuple[tuple[str, str, str], ...]
    places: str


@dataclass(frozen=True, slots=True)
class EditView:
    """One edit; `places` are classes by which a page filters."""

    text: str
    where: str
    tried: str
    instead: str
    averts: tuple[Averted, ...]
    shown: tuple[Link, ...]
    places: str

    @property
    def effects(self) -> tuple[tuple[str, str], ...]:
        """Each effect that it averts once, with the classes by which a page filters."""
        found: dict[str, set[str]] = {}
        for item in self.averts:
            for word, _, places in item.effects:
                found.setdefault(word, set()).update(places.split())
        return tuple((word, " ".join(sorted(places))) for word, places in found.items())


@dataclass(frozen=True, slots=True)
class EditsView:
    """The edits that matter to most, those that do to few, and what no edit is known for."""

    some: tuple[EditView, ...]
    minor: tuple[EditView, ...]
    unknown: tuple[Averted, ...]

    def counted(self, of: str) -> int:
        """How many edits matter on topologies of one sort, or ("all") on any."""
        some = (*self.some, *self.minor)
        return sum(of == "all" or f"at-{of}" in one.places.split() for one in some)


def edits_view(found: Upgrade) -> EditsView:
    """The edits of an upgrade."""
    known = edits(found)
    views: dict[bool, list[EditView]] = {False: [], True: []}
    for one in known.some:
        views[all(entry.group in _MINOR for entry in one.averts)].append(_edit(one))
    return EditsView(tuple(views[False]), tuple(views[True]), _averted(known.unknown))


def _edit(one: Edit) -> EditView:
    return EditView(
        text=one.text,
        where=one.where,
        tried=one.tried,
        instead=INSTEAD if one.shard_map_instead else "",
        averts=_averted(one.averts),
        shown=tuple(Link(remedy.clause, clause_path(remedy.clause)) for remedy in one.remedies),
        places=_classes(one.averts),
    )


def _averted(entries: Iterable[Entry]) -> tuple[Averted, ...]:
    """Each cause once, with its effects."""
    return tuple(
        Averted(
            title,
            tuple((one.effect.value, entry_anchor(one), _classes([one])) for one in some),
            _classes(some),
        )
        for title, some in by_title(entries).items()
    )


def _classes(entries: Iterable[Entry]) -> str:
    return " ".join(sorted({f"at-{one}" for entry in entries for one in filtered(entry)}))
