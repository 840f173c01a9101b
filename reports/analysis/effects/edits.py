"""The edits of an upgrade: what to change in a program to avert its effects.

An edit is what a known issue names, if its first remedy works on the new side; otherwise the first
remedy that works there, by its title. If no remedy keeps pmap and the same programs behave as
before under shard_map, that is the edit. For the rest none is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.model.records import JAX
from conformance.model.verdicts import Verdict
from reports.analysis.effects.changed import Entry, Group, Upgrade, in_processes
from reports.analysis.effects.explained import By
from reports.analysis.effects.remedies import Help, Remedy
from reports.store.order import topology_order
from reports.store.shown import processes

AS_SHARD_MAP = "Replace `jax.pmap` by `jax.jit(jax.shard_map(...))`: no tested remedy keeps pmap."
AS_IN = "Do as in “{}”"
# What is repaired needs no edit, and a remedy that fails is none.
_NOT_AVERTED = (Group.FIX_FAILS, Group.REPAIRED)
# What is no longer refused does no harm by itself.
_HARMLESS = (Group.TAKEN,)
# A new warning is no reason to give up pmap: shard_map may be silent because it does not look.
_NO_REWRITE = (*_HARMLESS, Group.WARNS)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a program: in words, the remedies that show it, the effects that it averts."""

    text: str
    remedies: tuple[Remedy, ...]
    averts: tuple[Entry, ...]

    @property
    def topologies(self) -> tuple[str, ...]:
        """The topologies on which what it averts was seen."""
        found = {where for entry in self.averts for where in entry.topologies}
        return tuple(sorted(found, key=topology_order))

    @property
    def places(self) -> frozenset[str]:
        """Return whether it shows in one process, in several, or in both."""
        return frozenset().union(*(entry.places for entry in self.averts))

    @property
    def where(self) -> str:
        """Describe with how many processes it matters."""
        return in_processes(self.averts)

    @property
    def shard_map_instead(self) -> bool:
        """Return whether everything that it averts is averted by using shard_map, too."""
        return bool(self.remedies) and all(entry.as_shard_map for entry in self.averts)

    @property
    def tried(self) -> str:
        """Describe with how many processes it was tested, if it matters for others too."""
        shown = {processes(where) for one in self.remedies for where in one.works}
        by_itself = any(one.implementation == JAX for one in self.remedies)
        return "" if by_itself or self.places <= shown else " and ".join(sorted(shown))


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of an upgrade, most severe first, and the effects without a known edit."""

    some: tuple[Edit, ...]
    unknown: tuple[Entry, ...]


def edits(found: Upgrade) -> Edits:
    """Return what to change for an upgrade."""
    by_text: dict[str, list[tuple[Remedy | None, Entry]]] = {}
    unknown: list[Entry] = []
    for entry in found.entries:
        if entry.group in _NOT_AVERTED and not _broke(entry):
            continue
        known = _edit_and_remedy(entry)
        if known is not None:
            by_text.setdefault(known[0], []).append((known[1], entry))
        elif entry.group not in (*_HARMLESS, *_NOT_AVERTED) and not _as_expected(entry):
            unknown.append(entry)
    some = tuple(
        Edit(
            text,
            tuple(dict.fromkeys(remedy for remedy, _ in pairs if remedy is not None)),
            tuple(entry for _, entry in pairs),
        )
        for text, pairs in by_text.items()
    )
    order = list(Group)

    def by_severity(edit: Edit) -> tuple[int, int]:
        first = min(order.index(entry.group) for entry in edit.averts)
        counted = sum(e.programs for e in edit.averts if order.index(e.group) == first)
        return first, -counted

    return Edits(tuple(sorted(some, key=by_severity)), tuple(unknown))


def by_title(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group entries by title: a known issue may have several effects."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.title, []).append(entry)
    return found


def _as_expected(entry: Entry) -> bool:
    """Return whether a known issue ended that kept back a warning, or the right sharding."""
    return entry.by is By.ENDED and entry.group in (Group.WARNS, Group.LIES)


def _broke(entry: Entry) -> bool:
    """Return whether it is a documented fix that worked before: programs with it must change.

    What works in its place follows from its known issue only: its own programs fix something else.
    """
    worked = any(one.before is Verdict.CONFORMS for one in entry.seen)
    return entry.group is Group.FIX_FAILS and worked and bool(entry.cause and entry.cause.edit)


def _edit_and_remedy(entry: Entry) -> tuple[str, Remedy | None] | None:
    """Return what averts an effect, and the remedy that shows it; None if nothing is known to."""
    works = [one for one in entry.remedies if one.help is Help.WORKS]
    cause = entry.cause
    if cause is not None and cause.edit:
        first = next((one for one in works if one.clause == cause.remedies[0]), None)
        if first is not None:
            return cause.edit, first
    for one in _own_first(entry, works):
        return AS_IN.format(one.title.rstrip(".")), one
    rewrite = entry.as_shard_map and entry.group not in _NO_REWRITE
    return (AS_SHARD_MAP, None) if rewrite else None


def _own_first(entry: Entry, works: list[Remedy]) -> Iterator[Remedy]:
    own = entry.cause.remedies if entry.cause is not None else ()
    yield from (one for one in works if one.clause in own)
    yield from (one for one in works if one.clause not in own)
