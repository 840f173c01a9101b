"""The edits of an upgrade as its page lists them: in words, what they avert, what shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.effects.changed import Entry, Group, Upgrade
from reports.effects.edits import AS_SHARD_MAP, Edit, by_title, edits
from reports.effects.upgrade_text import INSTEAD
from reports.reading.results import Results
from reports.site.entries import entry_anchor, filtered
from reports.site.names import Link, clause_path

# What does not make a program worse that ran: an edit that averts nothing else is folded.
_MINOR = (Group.OTHER_ERROR, Group.LIES, Group.WARNS, Group.TAKEN)
# What is told in sight however few programs have need of it.
_GRAVEST = (Group.DIES, Group.WRONG_NUMBERS)
_REAL = "idioms"  # the section of programs as users write them


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
    """The edits by who has need of them, and what no edit is known for.

    `some`: what dies or gives other numbers, and what a document speaks of or a program as users
    write them does; `rare`: what costs a program more or raises, and neither is so; `minor`: rest.
    """

    some: tuple[EditView, ...]
    rare: tuple[EditView, ...]
    minor: tuple[EditView, ...]
    unknown: tuple[Averted, ...]

    def counted(self, of: str) -> int:
        """How many edits matter on topologies of one sort, or ("all") on any."""
        some = (*self.some, *self.rare, *self.minor)
        return sum(of == "all" or f"at-{of}" in one.places.split() for one in some)


def edits_view(results: Results, found: Upgrade) -> EditsView:
    """The edits of an upgrade."""
    known = edits(found)
    some, rare, minor = [], [], []
    for one in known.some:
        groups = {entry.group for entry in one.averts}
        if groups.issubset(_MINOR):
            minor.append(_edit(one))
        elif groups.intersection(_GRAVEST) or _usual(results, one):
            some.append(_edit(one))
        else:
            rare.append(_edit(one))
    return EditsView(tuple(some), tuple(rare), tuple(minor), _averted(known.unknown))


def _usual(results: Results, one: Edit) -> bool:
    """Whether a document speaks of anything that it averts, or a program as users write them.

    What nothing averts but a rewrite is of the map itself, whatever the program.
    """
    if one.text == AS_SHARD_MAP:
        return True
    for clause in (results.clauses[id] for entry in one.averts for id in entry.clauses):
        claim = results.claims.get(clause.claim)
        if clause.section == _REAL or (claim is not None and not claim.silent):
            return True
    return False


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
