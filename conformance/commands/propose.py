"""`results propose RESULTS…`: entries to add, correct, narrow and remove, from recorded cells.

Each cell is judged again with today's clause, as if there were no entries: what then deviates
without an entry needs one, and an entry whose cell conforms is too wide.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance.catalogue.loading import Catalogue
from conformance.commands.entries import Entries
from conformance.commands.seen_tables import (
    EXACT,
    MOVED,
    common_beginning,
    one_of_pattern,
    pattern,
    range_pattern,
    table_of_faults,
    table_of_steps,
)
from conformance.commands.strength import cell_id, observations
from conformance.judging.deviations import Deviation, seen_patterns
from conformance.judging.judge import PROOF, Judgement, judge
from conformance.judging.rejudging import fault_of
from conformance.judging.seen import (
    SOME,
    Processes,
    StepPattern,
    agrees,
    shown,
    steps_of,
)
from conformance.model.records import Cell, Target
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.codes import figures_of
from conformance.spec.expectation import Finding, claimed
from conformance.spec.faults import Fault
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.observation import Observation, Step
from conformance.spec.topology import Topology
from conformance.store.recorded import UNJUDGED, cells, no_cell


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded cell, judged without entries."""

    clause: str
    implementation: str
    jax: str
    topology: str
    judgement: Judgement
    observations: tuple[Observation, ...] = ()
    fault: Fault | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # that its clause requires

    @property
    def deviates(self) -> bool:
        """Return whether the cell needs an entry: anything but conforming."""
        return self.judgement.verdict != Verdict.CONFORMS

    @property
    def compared(self) -> list[Finding]:
        """Return the findings that an entry can describe, without those of the proof."""
        return [one for one in self.judgement.findings if one.step != PROOF]

    @property
    def unproven(self) -> bool:
        """Return whether it is not proved which implementation ran; no entry excuses that."""
        return any(one.step == PROOF and not one.holds for one in self.judgement.findings)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry to add, without its known issue; `explains` says whether it excuses all its
    cells, `like` which clause has an entry with the same evidence, and its known issue.
    """

    file: str
    clause: str
    implementations: tuple[str, ...]
    seen: Mapping[str, Any]  # `saw`, `steps` or `fault`, as TOML has it
    cells: tuple[tuple[str, tuple[str, ...]], ...]
    processes: Processes | Mapping[str, Processes]
    explains: bool
    packages: Mapping[str, str] = field(default_factory=dict)
    like: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Excess:
    """An entry that is too wide: which of its `judged` cells conform, and whether all do.

    `corrections` are the fields, with their old and new values, that make it excuse all of them.
    """

    entry: Deviation
    conforms: tuple[str, ...]
    excuses: tuple[str, ...]
    other: tuple[str, ...]
    judged: int
    corrections: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(slots=True)
class Proposal:
    """What to change in the entries; `unproven` are deviating cells that no entry may excuse.

    `reference` are clauses whose expectation is wrong: the reference itself deviates from it.
    """

    add: list[Entry] = field(default_factory=list)
    reference: list[Entry] = field(default_factory=list)
    correct: list[Excess] = field(default_factory=list)
    narrow: list[Excess] = field(default_factory=list)
    drop: list[Excess] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    judged: int = 0


def propose(
    catalogue: Catalogue,
    deviations: Sequence[Deviation],
    files: Sequence[Path],
    undocumented: Collection[str] = (),
) -> Proposal:
    """Return which entries these results contradict; ResultsError if they have no cell.

    Of the claims `undocumented` legacy pmap is the reference.
    """
    judged = _Judged(catalogue, deviations, files)
    if not judged.cells:
        raise no_cell(files)
    found = Proposal(judged=judged.cells, unproven=judged.unproven)
    without = judged.without
    for number, some in sorted(judged.of_entry.items()):
        excess = _excess(deviations[number], some)
        if excess.corrections:
            found.correct.append(excess)
            corrected = set(map(id, some))
            without = [one for one in without if id(one) not in corrected]
        elif excess.conforms or excess.other:
            (found.narrow if excess.excuses else found.drop).append(excess)
    needed: list[Entry] = []
    for group in _alike(without):
        made = _entry(catalogue, group, judged.ran, judged.packages, deviations)
        silent = catalogue.clauses[made.clause].claim in undocumented
        (found.reference if silent and _always(group, judged.ran) else needed).append(made)
    found.add = _merged(needed)
    return found


class _Judged:
    """The recorded cells, judged again: by entry, and those that no entry describes.

    `ran` are the versions of JAX by clause, implementation and topology; `packages` those of each
    package.
    """

    def __init__(
        self, catalogue: Catalogue, deviations: Sequence[Deviation], files: Sequence[Path]
    ) -> None:
        self.cells = 0
        self.of_entry: dict[int, list[Judged]] = {}
        self.without: list[Judged] = []
        self.unproven: list[str] = []
        self.ran: dict[tuple[str, str, str], set[str]] = {}
        self.packages: dict[str, set[str]] = {}
        about = Entries(deviations)
        at = {id(entry): number for number, entry in enumerate(deviations)}
        for cell, target in cells(files):
            clause = catalogue.clauses.get(cell.clause)
            if clause is None or clause.timing is not None or cell.verdict in UNJUDGED:
                continue
            if cell.implementation not in clause.expect:
                continue
            self.cells += 1
            entries = about.about(cell, target)
            one = _judged(catalogue, cell, target, [e for e in entries if e.warns is not None])
            entries = tuple(entry for entry in entries if entry.warns is None)
            for entry in entries:
                self.of_entry.setdefault(at[id(entry)], []).append(one)
            self._add(one, cell, explained=any(_explains(entry, one) for entry in entries))

    def _add(self, judged: Judged, cell: Cell, *, explained: bool) -> None:
        self.ran.setdefault((judged.clause, judged.implementation, judged.topology), set()).add(
            judged.jax
        )
        for name, version in judged.packages.items():
            self.packages.setdefault(name, set()).add(version)
        if judged.deviates and not explained:
            if judged.unproven:
                self.unproven.append(cell_id(cell))
            else:
                self.without.append(judged)


def _judged(
    catalogue: Catalogue, cell: Cell, target: Target, warned: Sequence[Deviation]
) -> Judged:
    topology = Topology.parse(cell.topology)
    clause = catalogue.clauses[cell.clause]
    jax = target.jax or ""
    place = (clause, cell.implementation, topology, jax)
    there = target.packages
    seen, fault = observations(cell), fault_of(cell)
    return Judged(
        cell.clause,
        cell.implementation,
        jax,
        cell.topology,
        judge(*place, seen, fault, warned),
        seen,
        fault,
        {name: there[name] for name in clause.requires if name in there},
    )


def _explains(entry: Deviation, judged: Judged) -> bool:
    return not judged.unproven and entry.explains(
        judged.compared, judged.observations, judged.fault
    )


def _excess(entry: Deviation, some: Sequence[Judged]) -> Excess:
    conforms: list[Judged] = []
    excuses: list[Judged] = []
    other: list[Judged] = []
    for one in some:
        if not one.deviates:
            conforms.append(one)
        else:
            (excuses if _explains(entry, one) else other).append(one)
    corrections = () if conforms or excuses else tuple(_corrections(entry, other))
    return Excess(
        entry, _places(conforms), _places(excuses), _places(other), len(some), corrections
    )


def _places(some: Iterable[Judged]) -> tuple[str, ...]:
    """Describe cells, those of several implementations together."""
    there: dict[str, dict[str, None]] = {}
    for one in some:
        at = f"jax {one.jax} on {one.topology}"
        there.setdefault(at, {})[one.implementation] = None
    return tuple(f"{', '.join(names)}, {at}" for at, names in there.items())


def _corrections(entry: Deviation, some: Sequence[Judged]) -> list[tuple[str, Any, Any]]:
    """Return what to change in an entry so that it excuses these cells; nothing if more than
    the values of its fields is wrong.
    """
    if len(entry.saw) != 1 or not some:
        return []
    failed = [f for f in some[0].compared if not f.holds]
    if not failed:
        return []
    step = steps_of(some[0].observations).get((failed[0].process, failed[0].step))
    old = entry.saw[0].fields
    new = _corrected(old, shown(step, [f for f in failed if f.process == failed[0].process]))
    made = replace(entry, saw=(StepPattern(new),))
    return list(_changed(old, new)) if all(_explains(made, one) for one in some) else []


def _corrected(wanted: Any, seen: Any) -> Any:
    """Return a pattern whose parts that do not match are replaced by what was seen."""
    if agrees(wanted, seen):
        return wanted
    if isinstance(wanted, Mapping) and isinstance(seen, Mapping):
        return {
            key: _corrected(one, seen[key]) if key in seen else one for key, one in wanted.items()
        }
    if isinstance(wanted, Mapping) and isinstance(seen, int | float):
        return range_pattern([seen])
    if isinstance(seen, str):
        return pattern([seen])
    return one_of_pattern([seen]) if isinstance(wanted, str) else seen


def _changed(old: Any, new: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields whose pattern is another one, with both."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() <= new.keys():
        for key in old:
            yield from _changed(old[key], new[key], key)
    else:
        yield name, old, new


def _always(group: Sequence[Judged], ran: Mapping[Any, set[str]]) -> bool:
    """Return whether every release of legacy pmap that ran comes back, and deviates: then it is
    no regression of one.
    """
    first = group[0]
    if first.implementation != LEGACY_PMAP or any(one.fault is not None for one in group):
        return False
    seen: dict[str, set[str]] = {}
    for one in group:
        seen.setdefault(one.topology, set()).add(one.jax)
    return all(seen[on] == ran[first.clause, LEGACY_PMAP, on] for on in seen)


def _merged(entries: Iterable[Entry]) -> list[Entry]:
    """Join the entries that differ in their implementation only."""
    found: dict[str, Entry] = {}
    for one in entries:
        key = repr(replace(one, implementations=(), like=None))
        before = found.get(key)
        both = (*before.implementations, *one.implementations) if before else one.implementations
        found[key] = replace(before or one, implementations=both)
    return list(found.values())


def _alike(some: Iterable[Judged]) -> list[list[Judged]]:
    """Group cells that one entry can excuse: same clause, steps and kind of failure."""
    groups: dict[Any, list[Judged]] = {}
    for one in some:
        failing = _failing(one)
        processes = tuple(failing.items()) if isinstance(failing, Mapping) else failing
        key = (one.clause, one.implementation, _kind(one), processes)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _kind(judged: Judged) -> tuple[Any, ...]:
    """Return the kind of failure by step: the exception's type, else what was compared, and how."""
    failed = [f for f in judged.compared if not f.holds]
    if not failed:
        return (judged.judgement.verdict,)
    steps = steps_of(judged.observations)
    return tuple(
        sorted({(f.step, *_kind_of_step(steps.get((f.process, f.step)), f)) for f in failed})
    )


def _kind_of_step(step: Step | None, failed: Finding) -> tuple[str, ...]:
    if step is None:
        return ("absent",)
    if step.raised is not None:
        return (step.raised.type, step.raised.phase)
    moved = step.extra.get(MOVED)
    exact = [moved.get(key) for key in EXACT] if isinstance(moved, Mapping) else []
    of_moved = json.dumps(exact) if MOVED in figures_of([failed.code]) else ""
    return ("", failed.code, failed.mistake, failed.values, of_moved)


def _failing(judged: Judged) -> Processes | Mapping[str, Processes]:
    """Return in which processes each failing step fails; one value if all steps agree."""
    every = sorted({f.process for f in judged.compared})
    by_step: dict[str, set[int]] = {}
    for f in judged.compared:
        if not f.holds:
            by_step.setdefault(f.step, set()).add(f.process)
    processes = {step: _processes(failing, every) for step, failing in by_step.items()}
    if len(set(processes.values())) <= 1:
        return next(iter(processes.values()), "all")
    return {step: some for step, some in processes.items() if some != "all"}


def _processes(failing: Iterable[int], every: list[int]) -> Processes:
    """Return a word for a set of processes if there is one, else their numbers."""
    words = [word for word, chosen in SOME.items() if chosen(every) == sorted(failing)]
    return words[0] if words else tuple(sorted(failing))


def _entry(
    catalogue: Catalogue,
    group: Sequence[Judged],
    ran: Mapping[Any, set[str]],
    had: Mapping[str, set[str]],
    deviations: Sequence[Deviation],
) -> Entry:
    first = group[0]
    clause = catalogue.clauses[first.clause]
    seen = _seen(group, clause)
    places = _cells(group, clause.topologies, ran)
    made = Deviation(
        clause=(first.clause,),
        implementation=(first.implementation,),
        review=datetime.date.max,
        processes=_failing(first),
        **seen_patterns(seen),
    )
    return Entry(
        file=clause.where[0].removesuffix(".py") + ".toml",
        clause=first.clause,
        implementations=(first.implementation,),
        seen=seen,
        cells=places,
        processes=made.processes,
        explains=all(_explains(made, one) for one in group),
        packages=_packages(group, had),
        like=_like(group, deviations),
    )


def _like(group: Sequence[Judged], deviations: Sequence[Deviation]) -> tuple[str, str] | None:
    """Return the clause nearest by name with an entry in its section that would excuse these
    cells, and its known issue.
    """
    id = group[0].clause
    found = [
        (len(common_beginning(clause, id)), clause, entry.cause)
        for entry in deviations
        if entry.cause and entry.warns is None
        for clause in entry.clause
        if clause.partition(".")[0] == id.partition(".")[0]
        and all(_explains(entry, one) for one in group)
    ]
    return max(found)[1:] if found else None


def _packages(group: Sequence[Judged], had: Mapping[str, set[str]]) -> dict[str, str]:
    """Return, for each package that the clause requires, the range of versions that showed it."""
    seen: dict[str, set[str]] = {}
    for one in group:
        for name, version in one.packages.items():
            seen.setdefault(name, set()).add(version)
    return {name: _without_others(some, had[name]) for name, some in seen.items()}


def _without_others(some: set[str], among: set[str]) -> str:
    """Return one range of versions, excluding those in between that ran and did not show it."""
    first, *_, last = sorted(some, key=Version) * 2
    if first == last:
        return f"=={first}"
    inside = (one for one in among - some if Version(first) < Version(one) < Version(last))
    return ",".join(
        [f">={first}", f"<={last}", *(f"!={one}" for one in sorted(inside, key=Version))]
    )


def _seen(group: Sequence[Judged], clause: Clause) -> dict[str, Any]:
    """Return the fields that were observed, by step if several steps are compared."""
    if not any(one.compared for one in group):
        return {"fault": table_of_faults([one.fault for one in group if one.fault is not None])}
    by_step: dict[str, list[tuple[Step | None, Finding]]] = {}
    for one in group:
        steps = steps_of(one.observations)
        for f in one.compared:
            if not f.holds:
                by_step.setdefault(f.step, []).append((steps.get((f.process, f.step)), f))
    expectation, jax = clause.expect[group[0].implementation], group[0].jax
    tables = {
        step: table_of_steps(some, claimed(expectation, step, jax))
        for step, some in by_step.items()
    }
    alone = all(len({f.step for f in one.compared}) == 1 for one in group)
    return {"saw": next(iter(tables.values()))} if alone else {"steps": tables}


def _cells(
    group: Sequence[Judged], declared: Sequence[str], ran: Mapping[Any, set[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return ranges of the versions that showed it, each with its topologies; "*" for all.

    A version in between that ran and showed something else ends a range.
    """
    seen: dict[str, set[str]] = {}
    for one in group:
        seen.setdefault(one.topology, set()).add(one.jax)
    first = group[0]
    by_range: dict[str, list[str]] = {}
    for topology, versions in seen.items():
        every = ran[first.clause, first.implementation, topology]
        for bounds in _ranges(versions, every):
            by_range.setdefault(bounds, []).append(topology)
    return tuple(
        (bounds, ("*",) if set(some) >= set(declared) else tuple(sorted(some)))
        for bounds, some in by_range.items()
    )


def _ranges(some: set[str], among: set[str]) -> list[str]:
    runs: list[list[str]] = []
    before = ""
    for version in sorted(among, key=Version):
        if version in some and runs and runs[-1][-1] == before:
            runs[-1].append(version)
        elif version in some:
            runs.append([version])
        before = version
    return [f"=={run[0]}" if len(run) == 1 else f">={run[0]},<={run[-1]}" for run in runs]
