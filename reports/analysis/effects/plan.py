"""The changes of an upgrade in the order in which they are likely to be needed.

Edits of one rewrite are joined. The order is severity times how common the code is; of equals,
those that more tests need come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from math import inf

from reports.analysis.effects.changed import Entry, Group, Upgrade
from reports.analysis.effects.edits import AS_SHARD_MAP, Edit, edits
from reports.analysis.effects.effect import SEVERE, Effect
from reports.analysis.effects.pairs import Side
from reports.analysis.effects.remedies import Remedy
from reports.analysis.effects.rewrites import Place, Rewrite, Usage, rewrites, weight
from reports.store.order import LEGACY, NEW, NEW_BY_DEFAULT, version_order
from reports.store.results import Results

REAL = "idioms"  # the section of programs as users write them
# What does no harm to a program that ran, but for what it costs to look at it.
_HARMLESS = frozenset((Group.OTHER_ERROR, Group.OUTPUT, Group.WARNS, Group.TAKEN, Group.LIES))
MOST_SEVERE = 3  # edits for few programs that are shown in a line each
MOST_LIKELY = 10  # edits that are shown at once,
MOST_WORDS = 183  # and their words on a page: an upgrade is read in three minutes
_WORDS_OF_CODE = 0.5  # how many words of prose a word of code takes to read, being looked at
_WORDS_BESIDE = 8  # an edit's effects and headings
_NOT_NEW = 0.4  # the weight of what does not change for programs that ran


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a program: code if the table of rewrites has it, else words."""

    title: str
    place: Place
    usage: Usage
    weight: float
    averts: tuple[Entry, ...]
    remedies: tuple[Remedy, ...]
    edits: tuple[Edit, ...]
    rewrite: Rewrite | None = None

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects that it averts, the most severe first."""
        found = {entry.effect for entry in self.averts}
        return tuple(sorted(found, key=lambda effect: effect.rank))

    @property
    def programs(self) -> int:
        """Return how many programs need it, by effect."""
        return sum(entry.programs for entry in self.averts)

    @property
    def severe(self) -> bool:
        """Return whether it averts a crash, a hang or wrong values."""
        return not set(SEVERE).isdisjoint(self.effects)

    @property
    def raised_before(self) -> bool:
        """Return whether only programs need it that raised an error before too."""
        return set(self.effects) == {Effect.OTHER_ERROR}

    @property
    def words(self) -> float:
        """The approximate time to read it, in words."""
        code = "" if self.rewrite is None else f"{self.rewrite.before} {self.rewrite.after}"
        prose = self.title if self.rewrite is None else f"{self.title} {self.rewrite.noted[0]}"
        return _WORDS_BESIDE + len(prose.split()) + _WORDS_OF_CODE * len(code.split())

    @property
    def words_named(self) -> int:
        """The words of a line that names it, and its effects."""
        return len(self.title.split()) + len(self.effects)

    @property
    def likely(self) -> bool:
        """Return whether an ordinary program that ran may need it, so that it is shown unfolded."""
        if all(entry.group in _HARMLESS or entry.met_before for entry in self.averts):
            return False
        return self.usage in (Usage.ORDINARY, Usage.COMMON)


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of an upgrade, and effects without a known edit.

    Those that are likely to be needed are shown at once, by their place in a program.
    """

    likely: tuple[Change, ...]
    rare: tuple[Change, ...]
    unknown: tuple[Entry, ...]

    def named(self, room: float) -> tuple[Change, ...]:
        """Return the likely changes that a page names after those that it shows, a line each, in
        at most `room` words.
        """
        named = list[Change]()
        for one in (one for one in self.rare if one.likely):
            if one.words_named <= room:
                named.append(one)
                room -= one.words_named
        return tuple(named)

    @property
    def severe(self) -> tuple[Change, ...]:
        """The rare changes against a crash, a hang or wrong values, as many as a page has room
        for.
        """
        return tuple(one for one in self.rare if one.severe and not one.likely)[:MOST_SEVERE]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes, in the order in which they are shown."""
        return self.likely + self.rare

    @property
    def places(self) -> tuple[tuple[Place, tuple[Change, ...]], ...]:
        """The likely changes by their place in a program."""
        return tuple((place, tuple(some)) for place, some in groupby(self.likely, _place))


def plan(results: Results, found: Upgrade, most_words: float = inf) -> Plan:
    """Return what to change for an upgrade; its likely edits have at most `most_words`."""
    known = edits(found)
    table = rewrites().by_cause
    joined: dict[str, list[Edit]] = {}
    for edit in known.some:
        rewrite = _rewrite(edit, table)
        joined.setdefault(edit.text if rewrite is None else rewrite.title, []).append(edit)
    switched = _needs_switch(found.old)
    changes = [_change(results, some, table, switched=switched) for some in joined.values()]
    changes.sort(key=lambda one: (-one.weight, -one.programs, one.title))
    likely = _likely(changes, most_words)
    shown = set(map(id, likely))
    places = list(dict.fromkeys(one.place for one in likely))
    left = (one for one in changes if id(one) not in shown)
    return Plan(
        tuple(sorted(likely, key=lambda one: places.index(one.place))),
        tuple(sorted(left, key=lambda one: (not one.likely, not one.severe))),
        known.unknown,
    )


def _likely(changes: Iterable[Change], room: float) -> list[Change]:
    """Return the changes that are shown at once: one at least, and no more than can be read."""
    shown = list[Change]()
    for one in islice((one for one in changes if one.likely), MOST_LIKELY):
        room -= one.words
        if room >= 0 or not shown:
            shown.append(one)
    return shown


def _place(change: Change) -> Place:
    return change.place


def usage(results: Results, entry: Entry) -> Usage:
    """Return how common the code is that an entry concerns."""
    if entry.cause is not None and (known := rewrites().usages.get(entry.cause.cause)):
        return known
    for clause in (results.clauses[id] for id in entry.clauses):
        claim = results.claims.get(clause.claim)
        if clause.section == REAL or (claim is not None and not claim.silent):
            return Usage.COMMON
    return Usage.UNUSUAL


def by_weight(results: Results, entries: Iterable[Entry]) -> list[Entry]:
    """Return entries in the order of severity times likelihood."""
    return sorted(entries, key=lambda one: (-entry_weight(results, one), one.title))


def entry_weight(results: Results, entry: Entry) -> float:
    """Return severity times likelihood; less if no program ran before, or those that ran met the
    same known issue.
    """
    new = entry.ran_before and not entry.met_before
    return weight(entry.effect, usage(results, entry)) * (1.0 if new else _NOT_NEW)


def _rewrite(edit: Edit, table: dict[str, Rewrite]) -> Rewrite | None:
    for entry in edit.averts:
        if entry.cause is not None and entry.cause.cause in table:
            return table[entry.cause.cause]
    return None


def _needs_switch(old: Side) -> bool:
    """Return whether a side has its pmap only if the program sets the switch."""
    new_by_default = version_order(old.jax) >= NEW_BY_DEFAULT
    return old.implementation == (LEGACY if new_by_default else NEW)


def _change(
    results: Results, some: Sequence[Edit], table: dict[str, Rewrite], *, switched: bool
) -> Change:
    rewrite = _rewrite(some[0], table)
    averts = tuple(by_weight(results, (entry for one in some for entry in one.averts)))
    usages = [usage(results, entry) for entry in averts]
    usual = min(usages, key=lambda one: one.rank)
    heaviest = max(entry_weight(results, entry) for entry in averts)
    if rewrite is not None and rewrite.switch:
        usual = Usage.ORDINARY if switched else Usage.UNUSUAL
        heaviest = max(weight(entry.effect, usual) for entry in averts)
    return Change(
        title=some[0].text if rewrite is None else rewrite.title,
        place=Place.CALLING if rewrite is None else rewrite.place,
        usage=Usage.UNUSUAL if some[0].text == AS_SHARD_MAP else usual,
        weight=heaviest,
        averts=averts,
        remedies=tuple(dict.fromkeys(remedy for one in some for remedy in one.remedies)),
        edits=tuple(some),
        rewrite=rewrite,
    )
