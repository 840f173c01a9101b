"""Marks side by side: one per version, for an implementation on a topology.

A strip is what a reader compares at a glance; its words say the same in ranges of versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from reports.analysis.issues.places import jax_versions as jax_versions
from reports.render.site.marks import CHECKED, Mark, mark_of, together
from reports.render.site.names import implementation_words
from reports.store.order import implementation_order, topology_order
from reports.store.results import Results

Place = tuple[str, str]  # implementation and topology

_HELD = {Mark.RIGHT: "holds", Mark.PARTLY: "holds in part", Mark.WRONG: "does not hold"}

Marks = Mapping[Place, Sequence[Mark]]  # of one clause or claim: a mark per target


@dataclass(frozen=True, slots=True)
class Strip:
    """A mark per version for one implementation on one topology, equal neighbours joined."""

    implementation: str
    topology: str
    runs: tuple[tuple[Mark, int], ...]
    says: str

    @property
    def always_right(self) -> bool:
        """Return whether it was right in every version to which it applies."""
        found = {mark for mark, _ in self.runs}
        return Mark.RIGHT in found and found <= {Mark.RIGHT, Mark.NONE}

    @property
    def wrongness(self) -> tuple[int, int]:
        """Return the share that is wrong, and the share that ran; the worst sorts last."""
        counted = dict.fromkeys(Mark, 0)
        for mark, times in self.runs:
            counted[mark] += times
        return 2 * counted[Mark.WRONG] + counted[Mark.PARTLY], counted[Mark.RIGHT]


def strip(
    implementation: str,
    topology: str,
    marks: Sequence[Mark],
    versions: Sequence[str],
    silent: bool = False,
) -> Strip:
    """The strip of `marks`, one for each of `versions`; `silent`: of what no document says."""
    runs = tuple((mark, len(list(some))) for mark, some in groupby(marks))
    each = list(zip(versions, marks, strict=True))
    ran = [one for one in each if one[1] is not Mark.NOT_RUN]
    words = [
        f"{mark.word(silent)} {span([version for version, _ in some])}"
        for mark, group in groupby(ran, key=lambda one: one[1])
        for some in [list(group)]
    ]
    if missing := ranges(versions, (version for version, mark in each if mark is Mark.NOT_RUN)):
        words.append(f"{Mark.NOT_RUN.word(silent)} {missing}")
    return Strip(implementation, topology, runs, "; ".join(words))


def span(versions: Sequence[str]) -> str:
    """Neighbouring versions in words: "0.9.0", "0.9.0 to 0.9.2"."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def ranges(versions: Sequence[str], holds: Iterable[str]) -> str:
    """Return those of `versions` that `holds` names, neighbours as ranges: "0.7.2, 0.9.0 to
    0.9.2".
    """
    shown = set(holds)
    groups = groupby(versions, key=shown.__contains__)
    return ", ".join(span(list(some)) for inside, some in groups if inside)


def versions(results: Results) -> tuple[str, ...]:
    """The targets as heads of columns: their versions, with more where two read alike."""
    return tuple(results.labels[t.key].removeprefix("jax ") for t in results.targets)


def newest_index(results: Results) -> int:
    """Return which target is the newest that ran at all; the last where none did."""
    ran = {target for _, target, _ in results.verdicts}
    numbers = [i for i, t in enumerate(results.targets) if not t.unavailable and t.key in ran]
    return numbers[-1] if numbers else len(results.targets) - 1


def newest_version(results: Results) -> str:
    """The newest JAX that ran, as columns call it."""
    named = versions(results)
    return named[newest_index(results)] if named else ""


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def marks_of_clauses(results: Results) -> dict[str, dict[Place, list[Mark]]]:
    """Return, per clause, one mark per target in which it should have run."""
    number = {target.key: i for i, target in enumerate(results.targets)}
    found = {
        clause: {
            (implementation, topology): [Mark.NOT_RUN] * len(number)
            for implementation in results.columns(clause)
            for topology in results.grid[clause]
        }
        for clause in results.clauses
    }
    for key, outcome in results.outcomes.items():
        row = found[key.clause].get((key.implementation, key.topology))
        if row is not None:
            row[number[key.target]] = mark_of(outcome.verdict)
    return found


class Held(NamedTuple):
    """Whether the newest JAX does what a clause expects, in words, and whether it always does."""

    words: str
    always: bool


@lru_cache(maxsize=1)
def expectations_held(results: Results) -> dict[str, Held]:
    """Return for each clause whether the newest JAX does what is expected, by implementation."""
    number, newest = newest_index(results), newest_version(results)
    found: dict[str, Held] = {}
    for id, marks in marks_of_clauses(results).items():
        by: dict[str, list[Mark]] = {}
        for (implementation, _), row in marks.items():
            by.setdefault(implementation, []).append(row[number])
        there = {name: together(by[name]) for name in sorted(by, key=implementation_order)}
        words = [
            f"{_HELD[mark]} under {implementation_words(name)}"
            for name, mark in there.items()
            if mark in _HELD
        ]
        if words:
            always = {Mark.PARTLY, Mark.WRONG}.isdisjoint(there.values())
            found[id] = Held(f"JAX {newest}: {', '.join(words)}", always)
    return found


def joined(some: Iterable[Marks]) -> dict[Place, list[Mark]]:
    """The marks of several clauses as those of what they check together."""
    places: dict[Place, list[Sequence[Mark]]] = {}
    for marks in some:
        for place, row in marks.items():
            places.setdefault(place, []).append(row)
    return {
        place: [together(column) for column in zip(*rows, strict=True)]
        for place, rows in places.items()
    }


def worst_strips(marks: Marks, versions: Sequence[str], silent: bool = False) -> tuple[Strip, ...]:
    """A strip per implementation: of the topology on which most is wrong, of equals the largest.

    An implementation to which nothing applies has none.
    """
    by_implementation: dict[str, list[Strip]] = {}
    for (implementation, topology), row in marks.items():
        if Mark.NONE in row and not CHECKED.intersection(row):
            continue
        one = strip(implementation, topology, row, versions, silent)
        by_implementation.setdefault(implementation, []).append(one)
    return tuple(
        max(by_implementation[name], key=lambda one: (one.wrongness, topology_order(one.topology)))
        for name in sorted(by_implementation, key=implementation_order)
    )
