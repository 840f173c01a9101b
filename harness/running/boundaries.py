"""Bounds of what is said of JAX: each lies between two adjacent releases, both of which were run.

A bound of a deviation entry or of a known issue says that one release does something and the next
does not. That is known if the same cell was run on both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.catalogue.causes import Cause
from conformance.judging.applicability import skipped_everywhere
from conformance.judging.deviations import Deviation
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.names import CPU, LEGACY_PMAP
from conformance.spec.topology import Topology
from conformance.store import recorded

PLATFORM = CPU  # on which every release is run
TIMED = "timing"  # the section of the time lane, whose records are no cells


class Cell(NamedTuple):
    """A cell in any release; of a known issue's program `clause` is its slug."""

    clause: str
    implementation: str
    topology: str


@dataclass(frozen=True, slots=True)
class Boundary:
    """One bound: `subject` holds in one of the adjacent releases `before` and `after` alone.

    Each of `cells` has to be run in both; where `one` is set, one of them is enough.
    """

    subject: str
    before: str
    after: str
    cells: tuple[Cell, ...]
    one: bool = False

    def missing(self, ran: Set[tuple[Cell, str]]) -> list[tuple[Cell, str]]:
        """Return the cells, each with its release, that were not run and settle the bound."""
        by_cell = [
            [(cell, jax) for jax in (self.before, self.after) if (cell, jax) not in ran]
            for cell in self.cells
        ]
        if self.one:
            return min(by_cell, key=len, default=[])
        return [place for places in by_cell for place in places]


def bounds(versions: str, releases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return the pairs of adjacent releases of which a range of versions contains exactly one."""
    within = SpecifierSet(versions)
    for before, after in pairwise(sorted(releases, key=Version)):
        if within.contains(Version(before)) != within.contains(Version(after)):
            yield before, after


def of_entries(
    entries: Iterable[Deviation], clauses: Mapping[str, Clause], releases: Sequence[str]
) -> Iterator[Boundary]:
    """Return the bounds of deviation entries; one cell settles a warning that may be absent."""
    cells = _cells(clauses)
    for entry in entries:
        if not any(fnmatchcase(PLATFORM, pattern) for pattern in entry.platform):
            continue
        for versions, topologies in entry.cells or ((entry.jax, entry.topology),):
            for before, after in bounds(versions, releases):
                here = tuple(
                    one
                    for one in _cells_of(entry, cells)
                    if any(fnmatchcase(one.topology, pattern) for pattern in topologies)
                )
                yield Boundary(entry.where, before, after, here, one=entry.optional)


def of_causes(
    causes: Mapping[str, Cause],
    entries: Sequence[Deviation],
    clauses: Mapping[str, Clause],
    releases: Sequence[str],
) -> Iterator[Boundary]:
    """Return the bounds of known issues, from the cells that show each; not those of programs."""
    cells = _cells(clauses)
    for slug, cause in causes.items():
        bounded = list(_shown_bounds(cause, releases))
        if not bounded:
            continue
        shown = {one for id in clauses if clauses[id].cause == slug for one in cells[id]}
        for entry in entries:
            if entry.cause == slug:
                shown.update(_cells_of(entry, cells))
        for place, before, after in bounded:
            here = sorted(one for one in shown if one.implementation == place.implementation)
            yield Boundary(slug, before, after, tuple(here), one=True)


def of_programs(causes: Iterable[Cause], releases: Sequence[str]) -> Iterator[Boundary]:
    """Return the bounds of known issues, from the programs that show them."""
    for cause in causes:
        for place, before, after in _shown_bounds(cause, releases):
            yield Boundary(cause.slug, before, after, (place,))


def _shown_bounds(cause: Cause, releases: Sequence[str]) -> Iterator[tuple[Cell, str, str]]:
    """Yield where a program begins or ceases to show something, under each implementation."""
    found = {
        (Cell(cause.slug, implementation, topology), before, after): None
        for shows in cause.shows
        for before, after in bounds(shows.jax, releases)
        for implementation in shows.implementation
        for topology in shows.topology
        # Without the switch a program runs as under new pmap.
        if implementation != LEGACY_PMAP or Version(after) < Version("0.10")
    }
    yield from found


def between(before: str, after: str, releases: Sequence[str]) -> list[str]:
    """Return the releases between two; empty if these are adjacent."""
    return [jax for jax in releases if Version(before) < Version(jax) < Version(after)]


def run_programs(file: Path) -> Iterator[tuple[Cell, str]]:
    """Yield the runs of known issues' programs that `causes run` wrote, each with its JAX."""
    for line in file.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        yield Cell(one["cause"], one["implementation"], one["topology"]), one["jax"]


def line(boundary: Boundary, ran: Set[tuple[Cell, str]]) -> str:
    """Return a bound, the adjacent releases, and what has to be run to settle it."""
    missing = [f"{' '.join(cell)} on {jax}" for cell, jax in boundary.missing(ran)]
    return bound_line(boundary.subject, boundary.before, boundary.after, missing)


def bound_line(subject: str, before: str, after: str, missing: Sequence[str]) -> str:
    """Return a bound of a subject, and what of it was not run."""
    settled = f"not run: {'; '.join(missing)}" if missing else "settled"
    return f"{subject}: {before} | {after}: {settled}"


def run_cells(file: Path) -> Iterator[tuple[Cell, str]]:
    """Yield the cells of a results file that were run, or need not be, each with its JAX."""
    for cell, target in recorded.cells([file]):
        if cell.verdict != Verdict.NOT_RUN and target.jax is not None:
            yield Cell(cell.clause, cell.implementation, cell.topology), target.jax


def _cells(clauses: Mapping[str, Clause]) -> Mapping[str, Sequence[Cell]]:
    """Return the cells of each clause that run in some release."""
    return {
        id: [
            Cell(id, implementation, topology)
            for implementation in clause.expect
            for topology in clause.topologies
            if skipped_everywhere(clause, implementation, Topology.parse(topology)) is None
        ]
        for id, clause in clauses.items()
        if clause.section != TIMED
    }


def _cells_of(entry: Deviation, cells: Mapping[str, Sequence[Cell]]) -> Iterator[Cell]:
    """Yield the cells of the clauses and implementations that an entry names."""
    for id in entry.named_in(cells):
        yield from (one for one in cells[id] if one.implementation in entry.implementation)
