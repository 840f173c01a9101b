"""Effects of many pairs of cells, each different pair compared once.

A cell is digested once; equal digests are one object, so that what was compared between two
versions need not be between two others that did the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from reports.comparing.changes import CompareError
from reports.effects.derive import alone, derive
from reports.effects.digest import Digest, digest
from reports.effects.effect import Felt, not_measured
from reports.reading.order import implementation_order
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Target, TargetKey
from reports.reading.results import Results
from reports.reading.verdicts import Verdict

JAX = "jax"  # the column of what maps nothing
LEGACY, NEW, SHARD_MAP = "legacy_pmap", "new_pmap", "shard_map"

_RAN = frozenset(
    {
        Verdict.CONFORMS,
        Verdict.DEVIATES,
        Verdict.KNOWN_DEVIATION,
        Verdict.CRASHED,
        Verdict.HUNG,
        Verdict.FLAKY,
    }
)


@dataclass(frozen=True, slots=True)
class Side:
    """One end of an upgrade: an implementation in one JAX."""

    implementation: str
    target: Target

    @property
    def jax(self) -> str:
        return self.target.jax or ""

    def __str__(self) -> str:
        return f"{self.implementation}@{self.jax}"


def sides(results: Results) -> list[Side]:
    """Every implementation in every JAX of which anything was run, in order."""
    ran = {
        (key.implementation, key.target)
        for key, outcome in results.outcomes.items()
        if outcome.verdict in _RAN and key.implementation != JAX
    }
    return [
        Side(implementation, target)
        for implementation in sorted({i for i, _ in ran}, key=implementation_order)
        for target in results.targets
        if (implementation, target.key) in ran
    ]


def side(results: Results, text: str, option: str) -> Side:
    """The side that is written `legacy_pmap@0.7.2`; CompareError says which there are."""
    match = re.fullmatch(r"(\w+)@(.+)", text)
    if match is None:
        raise CompareError(
            f"{option} {text}: write it IMPLEMENTATION@VERSION, as in {LEGACY}@0.7.2"
        )
    there = sides(results)
    found = [
        one
        for one in there
        if one.implementation == match[1] and match[2] in (one.jax, one.target.target)
    ]
    if len(found) == 1:
        return found[0]
    of_it = [one.jax for one in there if one.implementation == match[1]]
    if not of_it:
        names = ", ".join(dict.fromkeys(one.implementation for one in there)) or "none"
        raise CompareError(
            f"{option} {text}: no cell of {match[1]} was run; the files have {names}"
        )
    many = f"{len(found)} targets are that" if found else f"{match[1]} was not run in it"
    raise CompareError(f"{option} {text}: {many}; it was in jax {', '.join(of_it)}")


class Effects:
    """The effects between cells of some results, computed when asked for and kept."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._digests: dict[CellKey, Digest | None] = {}
        self._equal: dict[Digest, Digest] = {}
        self._felt: dict[tuple[int | None, int], Felt] = {}

    def between(self, clause: str, topology: str, old: Side, new: Side) -> Felt | None:
        """The effect on a clause's program; None where neither side has anything to say of it."""
        before = self._key(clause, topology, old)
        after = self._key(clause, topology, new)
        if before == after:
            return None
        one, other = self.digest_of(before), self.digest_of(after)
        if other is None:
            return None if one is None else not_measured(self._why(after))
        place = (None if one is None else id(one), id(other))
        if place not in self._felt:
            self._felt[place] = derive(one, other)
        return self._felt[place]

    def alone(self, key: CellKey) -> tuple[Felt, ...]:
        """The hazards of a cell by itself."""
        found = self.digest_of(key)
        return () if found is None else alone(found)

    def digest_of(self, key: CellKey) -> Digest | None:
        """What of a cell is felt; None where it was not run."""
        if key not in self._digests:
            self._digests[key] = self._made(self.results.outcomes.get(key))
        return self._digests[key]

    def _made(self, outcome: Outcome | None) -> Digest | None:
        if outcome is None or outcome.verdict not in _RAN:
            return None
        made = digest(outcome.runs[-1].cell)
        return self._equal.setdefault(made, made)

    def _key(self, clause: str, topology: str, of: Side) -> CellKey:
        key = CellKey(clause, of.target.key, of.implementation, topology)
        # What maps nothing is the same program under whatever implementation.
        expected = self.results.clauses[clause].expected
        return key._replace(implementation=JAX) if JAX in expected else key

    def _why(self, key: CellKey) -> str:
        outcome = self.results.outcome(key)
        return f"{outcome.verdict.value}: {outcome.reason}"


def cell_of(results: Results, clause: str, topology: str, of: Side) -> CellKey:
    """The cell of a clause on one side."""
    implementation = JAX if JAX in results.clauses[clause].expected else of.implementation
    return CellKey(clause, of.target.key, implementation, topology)


def target_keys(some: Iterable[Side]) -> set[TargetKey]:
    """The targets of some sides."""
    return {one.target.key for one in some}
