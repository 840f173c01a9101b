"""Where something was seen: under which implementation, in which JAX as ranges, where it ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.model.records import Clause
from conformance.model.verdicts import Verdict
from reports.store.order import implementation_order, topology_order, version_order
from reports.store.outcomes import CellKey
from reports.store.results import Results

ONE, SEVERAL = "one process", "several processes"
A_JOB = "standalone job"  # in place of a topology: a plain program that starts its processes
_SILENT = (Verdict.NOT_RUN, Verdict.REMOVED, Verdict.NOT_APPLICABLE)


def processes(topology: str) -> str:
    """Describe the number of processes of a topology."""
    return ONE if topology.startswith("1x") else SEVERAL


def why_not_run(clause: Clause, topology: str) -> str:
    """Return why a clause is not declared for a topology; empty without a reason."""
    of_several = bool(clause.topologies) and ONE not in map(processes, clause.topologies)
    if of_several and processes(topology) == ONE:
        return "the test is about several processes"
    return clause.left_out or ""


def place_shown(topology: str, of_program: str) -> str:
    """Return where a program ran that has one process or several, as `of_program` says: on its
    topology, or as a job of its own if the topology has one process alone.
    """
    return A_JOB if of_program == SEVERAL and processes(topology) == ONE else topology


@dataclass(frozen=True, slots=True)
class Shown:
    """Under which implementation, in which JAX and on which topologies something was seen."""

    implementation: str
    jax: str
    topologies: tuple[str, ...]


def versions_run(results: Results) -> dict[tuple[str, str, str], set[str]]:
    """Clause, implementation and topology to the versions of JAX in which something was seen."""
    found: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for key, outcome in results.outcomes.items():
        if outcome.verdict not in _SILENT:
            place = key.clause, key.implementation, key.topology
            found[place].add(key.target.jax or key.target.target)
    return found


def where_shown(
    keys: Iterable[CellKey],
    ran: Mapping[tuple[str, str, str], set[str]],
    jobs: Collection[CellKey] = (),
    *,
    apart: bool = False,
) -> Iterator[Shown]:
    """Yield where cells stand, by implementation; `ran` is what `versions_run` gives, `jobs` the
    cells whose program starts processes of its own. `apart`: one process and several, if their
    versions differ.
    """
    groups: dict[tuple[str, str], list[CellKey]] = defaultdict(list)
    for key in keys:
        groups[key.implementation, processes(key.topology) if apart else ""].append(key)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (name, _), some in groups.items():
        there = {A_JOB if key in jobs else key.topology for key in some}
        found[name, _versions(some, ran)] |= there
    for (name, jax), topologies in sorted(found.items(), key=_by_place):
        yield Shown(name, jax, tuple(sorted(topologies, key=topology_order)))


def _by_place(pair: tuple[tuple[str, str], set[str]]) -> tuple[Any, ...]:
    (name, _), topologies = pair
    return implementation_order(name), min(map(topology_order, topologies))


def _versions(some: Iterable[CellKey], ran: Mapping[tuple[str, str, str], set[str]]) -> str:
    """Return the versions of cells as ranges.

    A version in which a cell was not run is inside of a range if the cell is there in the versions
    before and after in which it was run.
    """
    places: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for key in some:
        place = key.clause, key.implementation, key.topology
        places[place].add(key.target.jax or key.target.target)
    every = sorted(
        set().union(*places.values(), *(ran.get(place, ()) for place in places)), key=version_order
    )
    shown: set[str] = set()
    for place, versions in places.items():
        there = ran.get(place, set()) | versions
        before, between = False, list[str]()
        for version in every:
            if version not in there:
                between.append(version)
                continue
            if before and version in versions:
                shown.update(between)
            before, between = version in versions, []
        shown |= versions
    return spans(shown, every)


def spans(some: Iterable[str], among: Iterable[str]) -> str:
    """Versions in order, as in "0.7.2 to 0.9.0, 0.10.2": those between two of a span are in it."""
    chosen, runs = set(some), list[list[str]]()
    before = ""
    for version in sorted({*among, *chosen}, key=version_order):
        if version in chosen:
            if runs and runs[-1][-1] == before:
                runs[-1].append(version)
            else:
                runs.append([version])
        before = version
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
