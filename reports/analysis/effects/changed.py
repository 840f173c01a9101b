"""The content of an upgrade: groups in the order in which a reader asks, and their entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

from conformance.model.records import Cause
from conformance.model.verdicts import Verdict
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.explained import By
from reports.analysis.effects.pairs import Side
from reports.analysis.effects.remedies import Remedy
from reports.store.order import topology_order
from reports.store.shown import SEVERAL, place_shown


class Group(StrEnum):
    """A kind of change in an upgrade, in the order in which a reader asks."""

    DIES = "crashes or hangs"
    WRONG_NUMBERS = "silently gives other numbers"
    RAISES = "raises now"
    OTHER_ERROR = "raises another error"
    MOVES_MORE = "silently communicates, copies or computes more"
    MEMORY = "needs more memory"
    LIES = "gives the same numbers in another place"
    OUTPUT = "prints or compares differently"
    WARNS = "warns"
    TAKEN = "no longer refused, though a refusal is expected"
    FIX_FAILS = "a fix that the documents give and that does not work there"
    REPAIRED = "repaired"

    @property
    def heading(self) -> str:
        """The group's heading on pages and the terminal."""
        return _HEADINGS[self]


_HEADINGS = {
    Group.DIES: "Crashes and hangs",
    Group.WRONG_NUMBERS: "Wrong values",
    Group.RAISES: "New errors",
    Group.OTHER_ERROR: "Other errors than before",
    Group.MOVES_MORE: "Extra communication or computation",
    Group.MEMORY: "Extra memory",
    Group.LIES: "Different sharding, same values",
    Group.OUTPUT: "Printed, compared or promoted differently",
    Group.WARNS: "New warnings",
    Group.TAKEN: "Errors no longer raised",
    Group.FIX_FAILS: "Documented fixes that do not work",
    Group.REPAIRED: "Fixed, in whole or in part",
}


GROUP_OF = {
    Effect.CRASHES: Group.DIES,
    Effect.HANGS: Group.DIES,
    Effect.WRONG_NUMBERS: Group.WRONG_NUMBERS,
    Effect.RAISES: Group.RAISES,
    Effect.OTHER_ERROR: Group.OTHER_ERROR,
    Effect.MOVES_MORE: Group.MOVES_MORE,
    Effect.NEEDS_MORE_MEMORY: Group.MEMORY,
    Effect.SLOWER: Group.MOVES_MORE,
    Effect.LIES_ELSEWHERE: Group.LIES,
    Effect.OTHER_OUTPUT: Group.OUTPUT,
    Effect.WARNS: Group.WARNS,
    Effect.TAKEN: Group.TAKEN,
    Effect.REPAIRED: Group.REPAIRED,
}


@lru_cache(maxsize=4)  # asked of very many tests
def _matters(processes: str, alone: bool) -> frozenset[str]:
    return frozenset((processes, SEVERAL) if alone else (processes,))


class Seen(NamedTuple):
    """One program on one topology that changed, with its verdicts on both sides.

    `processes` says whether it runs in one process or in several, which a plain program may start
    itself. `alone` says that its clause is tested with one process only.
    """

    clause: str
    topology: str
    shown: ShownEffect
    verdict: Verdict
    before: Verdict | None  # at the old side; None where the baseline says nothing of it
    fact: str
    processes: str
    alone: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """Return its number of processes and its fact, by which tests are counted."""
        return self.processes, self.fact

    @property
    def where(self) -> str:
        """Return its topology, or that it is a job of its own."""
        return place_shown(self.topology, self.processes)

    @property
    def matters(self) -> frozenset[str]:
        """Return the numbers of processes for which it matters: where it shows, and where it was
        not tested.
        """
        return _matters(self.processes, self.alone)


@dataclass(frozen=True)
class Entry:
    """One thing that changes: a sentence, the programs that show it, and its remedies."""

    group: Group
    effect: Effect
    title: str
    sentence: str
    cause: Cause | None
    claim: str
    seen: tuple[Seen, ...]
    clauses: tuple[str, ...]  # of `seen`, each once
    programs: int
    smallest: str
    remedies: tuple[Remedy, ...] = ()
    by: By = By.NOTHING  # what explains it
    as_shard_map: bool = False  # whether all these programs do as before under shard_map there
    whole: Cause | None = None  # the cause of the same defect of which its own is a part
    shown_before: bool = False  # whether the old side's other tests show the cause too

    @property
    def raises_otherwise(self) -> bool:
        """Return whether all its programs raised before and raise another error now."""
        return all(one.shown.effect is Effect.OTHER_ERROR for one in self.seen)

    @cached_property
    def topologies(self) -> tuple[str, ...]:
        """The topologies that show it, by number of processes, then devices."""
        return tuple(sorted({one.where for one in self.seen}, key=topology_order))

    @cached_property
    def places(self) -> frozenset[str]:
        """Return whether it shows in one process, in several, or in both."""
        return frozenset(one.processes for one in self.seen)

    @cached_property
    def matters(self) -> frozenset[str]:
        """Return where it shows, and where none of its programs was tested."""
        ways = {(one.processes, one.alone) for one in self.seen}
        found = frozenset().union(*(_matters(*way) for way in ways))
        # A program that was run with several processes too, and shows it with one alone, tells.
        looked = any(not one.alone for one in self.seen)
        return found & self.places if looked and SEVERAL not in self.places else found

    @cached_property
    def shown(self) -> frozenset[tuple[str, str]]:
        """Return the facts that show it, each with its number of processes."""
        return frozenset(one.place for one in self.seen)

    @cached_property
    def example(self) -> Seen:
        """The cell of the smallest program."""
        return next(one for one in self.seen if one.clause == self.smallest)

    @cached_property
    def compared(self) -> bool:
        """Return whether the baseline has an observation of any of the programs."""
        return any(one.before is not None for one in self.seen)

    @cached_property
    def ran_before(self) -> bool:
        """Return whether any of the programs did not raise before."""
        return any(not one.shown.refused for one in self.seen)

    @cached_property
    def mostly_refused(self) -> bool:
        """Return whether most of the programs raised before."""
        return sum(one.shown.refused for one in self.seen) * 2 > len(self.seen)

    @property
    def met_before(self) -> bool:
        """Return whether programs that ran met the same known issue before: no news to their
        users. What is repaired was there before, of course.
        """
        if self.group is Group.REPAIRED:
            return False
        return self.shown_before and self.ran_before and not self.mostly_refused

    @cached_property
    def second_call(self) -> bool:
        """Return whether for any program the first call succeeds and the second fails."""
        return any(one.shown.second_call for one in self.seen)

    @cached_property
    def always_second_call(self) -> bool:
        """Return whether that is so for all of them."""
        return all(one.shown.second_call for one in self.seen)


def in_processes(entries: Iterable[Entry]) -> str:
    """Describe with how many processes something shows, and whether more were not tested."""
    some = list(entries)
    places = frozenset().union(*(one.places for one in some))
    if len(places) > 1:
        return "one process or several"
    [place] = places
    more = frozenset().union(*(one.matters for one in some)) - places
    return f"{place}; not tested with several" if more else place


def facts(some: Iterable[tuple[str, str]], place: str) -> set[str]:
    """Return the facts of one number of processes, or of any if `place` is empty."""
    return {fact for where, fact in some if place in (where, "")}


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Everything that changes from one side to another; counts are of programs, which are facts.

    `compared_of` counts the compared facts by number of processes, "" for any; `differing` are
    those that an entry shows, each with its number of processes.
    """

    old: Side
    new: Side
    entries: tuple[Entry, ...]
    same_cells: int
    compared_of: Mapping[str, int]
    differing: frozenset[tuple[str, str]]
    missing: tuple[tuple[str, int], ...]  # why programs were not compared, and how many cells

    @property
    def compared(self) -> int:
        """Return how many facts were compared."""
        return self.compared_of[""]

    @property
    def same(self) -> int:
        """Return how many of them are the same."""
        return self.same_of("")

    def same_of(self, place: str) -> int:
        """Return how many facts are the same with one process, with several, or "" with any."""
        return self.compared_of[place] - len(facts(self.differing, place))

    def only(self, wanted: Callable[[Entry], bool], *, count_others: bool = True) -> Upgrade:
        """Return the upgrade with the wanted entries alone.

        A fact that no other entry shows counts as the same, or as not compared.
        """
        entries = tuple(filter(wanted, self.entries))
        differing = self.differing.intersection(frozenset().union(*(one.shown for one in entries)))
        others = frozenset() if count_others else self.differing - differing
        compared_of = {
            place: count - len(facts(others, place) - facts(differing, place))
            for place, count in self.compared_of.items()
        }
        return replace(self, entries=entries, compared_of=compared_of, differing=differing)

    def entries_in(self, group: Group) -> tuple[Entry, ...]:
        """Return the entries of a group."""
        return tuple(one for one in self.entries if one.group is group)

    def folded(self, group: Group) -> tuple[tuple[Entry, tuple[Entry, ...]], ...]:
        """Return the entries of a group, each with the entries that are parts of the same defect.

        A part stands alone if its whole is not in the group, if it shows where the whole does not,
        or if it changes working code while the whole only changes an error.
        """
        some = self.entries_in(group)
        wholes = {(e.cause.cause, e.by): e for e in some if e.cause is not None and not e.whole}
        parts: dict[int, list[Entry]] = {}
        for one in some:
            whole = wholes.get((one.whole.cause, one.by)) if one.whole else None
            matters_as_much = whole is not None and one.ran_before <= whole.ran_before
            if whole is not None and matters_as_much and one.places <= whole.places:
                parts.setdefault(id(whole), []).append(one)
        inner = {id(one) for group_parts in parts.values() for one in group_parts}
        return tuple((one, tuple(parts.get(id(one), ()))) for one in some if id(one) not in inner)

    def counted(self, group: Group) -> int:
        """Return how many entries a group has, counting parts of one defect once."""
        return len(self.folded(group))

    @property
    def groups(self) -> tuple[tuple[Group, tuple[Entry, ...]], ...]:
        """Return the groups that have entries, in order."""
        return tuple((group, self.entries_in(group)) for group in Group if self.entries_in(group))
