"""Which of its cells a run executes: all of them (`full`), or every fact once (`core`).

The core tier is computed from the catalogue, the deviation entries and the published duration of
each run. It is the same on every machine and in every process of a run.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.catalogue.loading import Catalogue
from conformance.judging.applicability import skipped_everywhere
from conformance.judging.deviations import Deviation
from conformance.spec.clause import Clause
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.topology import Topology
from harness.running.cells import CellId

CORE, FULL = "core", "full"
TIERS = (CORE, FULL)

HAS_LEGACY = SpecifierSet("<0.10", prereleases=True)
# Of a run that the file of durations does not name.
UNKNOWN_S = 0.1
UNKNOWN_BUSY_S = 0.05
WAITS_FROM_S = 2.0  # a shorter run is not worth a thread of its own
# Share of its time in which it computes. What only lacked a core had more than this, on the busy
# machines where durations are recorded.
WAITS_BELOW = 0.15

FILE = Path(__file__).with_name("durations.json")  # by `pmap-conformance results durations`


class Run(NamedTuple):
    """One run of a probe; several cells may judge it. `clause` is the first clause that does."""

    target: str
    topology: str
    clause: str
    implementation: str


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a run took, and its CPU time: both in seconds."""

    seconds: float = UNKNOWN_S
    busy_s: float = UNKNOWN_BUSY_S

    @property
    def waits(self) -> bool:
        """Return whether the run mostly waits, so that others can run beside it."""
        return self.seconds >= WAITS_FROM_S and self.busy_s < WAITS_BELOW * self.seconds


@dataclass(frozen=True, slots=True)
class Tier:
    """The chosen cells, how many runs they need, and how many runs the full tier has."""

    cells: frozenset[CellId]
    runs: int
    of: int


def run_of(cell: CellId, catalogue: Catalogue) -> Run:
    """Return the run that a cell judges."""
    first = catalogue.runs.get(cell.clause, (cell.clause,))[0]
    return Run(cell.target, cell.topology, first, cell.implementation)


@functools.cache
def _durations() -> Mapping[tuple[str, str], Duration]:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        (topology, clause): Duration(*seconds)
        for topology, clauses in recorded.items()
        for clause, seconds in clauses.items()
    }


def duration(run: Run) -> Duration:
    """Return how long a run took when it was measured, whichever the target."""
    return _durations().get((run.topology, run.clause), Duration())


def core(
    cells: Iterable[CellId],
    catalogue: Catalogue,
    entries: Sequence[Deviation],
    versions: Mapping[str, str | None],
    platform: str,
) -> Tier:
    """Choose the runs that together show every fact, deviation entry and cause of `cells`.

    A fact is shown once under each implementation, on the newest target that has it, by the
    run that computes least, on the kind of topology that the fact is about. An entry or a cause is
    shown by one run on any target where it applies. `versions` is each target's JAX, None where
    unknown.
    """
    return _Choice(catalogue, versions, platform).choose(cells, entries)


@dataclass
class _Choice:
    catalogue: Catalogue
    versions: Mapping[str, str | None]
    platform: str
    cells_of: dict[Run, list[CellId]] = field(default_factory=dict)

    def choose(self, cells: Iterable[CellId], entries: Sequence[Deviation]) -> Tier:
        for cell in cells:
            if self._runs(cell):
                self.cells_of.setdefault(run_of(cell, self.catalogue), []).append(cell)
        chosen: set[Run] = set()
        for candidates in (*self._of_entries(entries), *self._of_facts()):
            if chosen.isdisjoint(candidates):
                chosen.add(min(candidates, key=self._cost))
        taken = frozenset(cell for run in chosen for cell in self.cells_of[run])
        return Tier(taken, len(chosen), len(self.cells_of))

    def _runs(self, cell: CellId) -> bool:
        """Return whether the cell runs at all, as far as that is known without its target."""
        version = self.versions.get(cell.target)
        gone = version is not None and not _has_legacy(version)
        if cell.implementation == LEGACY_PMAP and gone and not self._clause(cell).selects:
            return False
        topology = _parsed(cell.topology)
        return skipped_everywhere(self._clause(cell), cell.implementation, topology) is None

    def _clause(self, cell: CellId) -> Clause:
        return self.catalogue.clauses[cell.clause]

    def _cost(self, run: Run) -> tuple[bool, float, int, Run]:
        clause = self.catalogue.clauses[run.clause]
        asks_more = bool(clause.requires or clause.programs)
        # By CPU time: while a run waits, others run beside it.
        return asks_more, duration(run).busy_s, _parsed(run.topology).processes, run

    def _of_entries(self, entries: Sequence[Deviation]) -> Iterator[list[Run]]:
        """Yield the runs that show each entry and each known issue, rarest first."""
        by_clause: dict[str, list[tuple[Run, CellId]]] = {}
        for run, cells in self.cells_of.items():
            for cell in cells:
                by_clause.setdefault(cell.clause, []).append((run, cell))
        groups: list[list[Run]] = []
        causes: dict[str, list[Run]] = {}
        for entry in entries:
            runs = [
                run
                for id in entry.named_in(by_clause)
                for run, cell in by_clause[id]
                if self._matches(entry, cell)
            ]
            if runs:
                groups.append(runs)
                causes.setdefault(entry.cause, []).extend(runs)
        for id, found in by_clause.items():
            if cause := self.catalogue.clauses[id].cause:
                causes.setdefault(cause, []).extend(run for run, _ in found)
        return iter(sorted((*groups, *causes.values()), key=lambda runs: (len(runs), min(runs))))

    def _matches(self, entry: Deviation, cell: CellId) -> bool:
        version = self.versions.get(cell.target)
        return version is not None and entry.matches(
            cell.clause, cell.implementation, version, self.platform, cell.topology
        )

    def _of_facts(self) -> Iterator[list[Run]]:
        """Yield the runs that show each fact under each implementation."""
        facts: dict[tuple[str, str], list[tuple[Run, CellId]]] = {}
        for run, cells in self.cells_of.items():
            for cell in cells:
                key = (self._clause(cell).fact, cell.implementation)
                facts.setdefault(key, []).append((run, cell))
        for (fact, _), found in sorted(facts.items()):
            newest = max((run.target for run, _ in found), key=self._age)
            here = [(run, cell) for run, cell in found if run.target == newest]
            several = self._is_of_several(fact, [cell.clause for _, cell in here])
            kind = [run for run, _ in here if (_parsed(run.topology).processes > 1) == several]
            yield kind or [run for run, _ in here]

    def _age(self, target: str) -> tuple[bool, Version, str]:
        version = self.versions.get(target)
        return version is None, Version(version or "0"), target

    def _is_of_several(self, fact: str, clauses: Sequence[str]) -> bool:
        """Return whether a fact is about several processes: the clause of its name, or most
        clauses.
        """
        named = [fact] if fact in self.catalogue.clauses else clauses
        several = [
            all(_parsed(one).processes > 1 for one in self.catalogue.clauses[id].topologies)
            for id in named
        ]
        return 2 * sum(several) > len(several)


@functools.cache
def _has_legacy(version: str) -> bool:
    return Version(version) in HAS_LEGACY


_parsed: Callable[[str], Topology] = functools.cache(Topology.parse)
