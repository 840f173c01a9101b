"""Loads results files and merges them into one set of outcomes.

A report is only as true as what it reads: a line that cannot be understood stops it with file and
line, except the torn last line of an interrupted run, which is dropped and mentioned. A cell
without a record is an outcome too (`not run`), so that nothing can look checked by being absent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from conformance.model.codec import NoValue
from conformance.model.records import (
    AnyRecord,
    Cause,
    Cell,
    Claim,
    Clause,
    Core,
    Growth,
    Strength,
    Target,
    TargetKey,
    Timing,
)
from conformance.model.verdicts import Verdict
from conformance.store.reading import no_record
from reports.store.collecting import paused_collector
from reports.store.files import records
from reports.store.lazily import Scratch
from reports.store.older import with_releases
from reports.store.order import (
    implementation_order,
    labels,
    spec_names,
    topology_order,
    version_order,
)
from reports.store.outcomes import CellKey, Outcome, Run, TimingKey, newest, repeated

# What can be said of a cell whose target was not to be had, or died while it came up.
_WITHOUT_TARGET = (Verdict.NOT_RUN, Verdict.CRASHED, Verdict.HUNG)

_NO_RESULT = Outcome(Verdict.NOT_RUN, "no result in the files of this report")
_LEFT_OUT = Outcome(Verdict.LEFT_OUT, "not in the core tier: --tier full runs it")

ANY_TOPOLOGY = "any"  # where a clause is shown that ran nowhere and names no topology


@dataclass(frozen=True, eq=False)  # by identity: what was made of one is kept
class Results:
    """Everything that the files say, targets in version order, the rest in the files' order.

    `labels` and `names` are the targets' for people and for programs; `grid` is clause id to the
    topologies where it should have run; `timings` are the figures that illustrate a cell; `growths`
    what was compiled for TPU pods, beside its clause. `absent` counts the clauses that were left
    out because no file has a result of them.
    """

    targets: tuple[Target, ...]
    claims: Mapping[str, Claim]
    clauses: Mapping[str, Clause]
    outcomes: Mapping[CellKey, Outcome]
    notes: tuple[str, ...]
    labels: Mapping[TargetKey, str]
    names: Mapping[TargetKey, str]
    implementations: tuple[str, ...]
    topologies: tuple[str, ...]
    grid: Mapping[str, tuple[str, ...]]
    timings: Mapping[CellKey, tuple[Timing, ...]] = field(default_factory=dict)
    causes: Mapping[str, Cause] = field(default_factory=dict)
    strength: Mapping[str, Strength] = field(default_factory=dict)
    growths: tuple[Growth, ...] = ()
    environments: tuple[Target, ...] = ()  # a record per run and target, with what was installed
    absent: int = 0

    def outcome(self, key: CellKey) -> Outcome:
        """The outcome of a cell, `not run` with the reason where no file has it."""
        if key in self.outcomes:
            return self.outcomes[key]
        return self._without.get(key.target, _NO_RESULT)

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """Return the platforms that cells are of, the one with the most first."""
        counted = Counter(key.target.platform for key in self.outcomes)
        return tuple(name for name, _ in counted.most_common() if name)

    def on(self, platform: str) -> Results:
        """Return the results of one platform, with the targets that were not to be had."""
        targets = tuple(t for t in self.targets if t.platform in (platform, None))
        there = {t.key for t in targets}
        outcomes = {key: one for key, one in self.outcomes.items() if key.target in there}
        everywhere, grid = _grid(self.clauses, outcomes)
        return with_fields(
            self,
            targets=targets,
            outcomes=outcomes,
            labels=labels(targets),
            names=spec_names(targets),
            topologies=everywhere,
            grid=grid,
            timings={key: some for key, some in self.timings.items() if key.target in there},
            environments=tuple(t for t in self.environments if t.key in there),
        )

    def of_one_platform(self) -> Results:
        """Return the results of the platform with the most cells."""
        return self.on(self.platforms[0]) if len(self.platforms) > 1 else self

    @cached_property
    def _without(self) -> dict[TargetKey, Outcome]:
        """Return what is said of a cell that no file has, where its target was not to be had."""
        core = {t.key: _LEFT_OUT for t in self.targets if t.core is not None}
        return core | {
            t.key: Outcome(Verdict.NOT_RUN, f"target unavailable: {t.unavailable}")
            for t in self.targets
            if t.unavailable
        }

    def cells(self) -> Iterator[tuple[CellKey, Outcome]]:
        """Yield each expected cell, recorded or not.

        Of a target of which the core tier was run, only the cells of that tier should be.
        """
        for clause in self.clauses:
            for target in self.targets:
                for implementation in self.columns(clause):
                    for topology in self.grid[clause]:
                        key = CellKey(clause, target.key, implementation, topology)
                        outcome = self.outcome(key)
                        if outcome is not _LEFT_OUT:
                            yield key, outcome

    def columns(self, clause: str) -> tuple[str, ...]:
        """The implementations of which a clause expects something, or that a file has of it."""
        return self._columns[clause]

    @cached_property
    def _columns(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for id, clause in self.clauses.items():
            known = {*clause.expected, *self._seen.get(id, ())}
            found[id] = tuple(one for one in self.implementations if one in known)
        return found

    @cached_property
    def _seen(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for key in self.outcomes:
            found.setdefault(key.clause, set()).add(key.implementation)
        return found

    @cached_property
    def verdicts(self) -> frozenset[tuple[str, TargetKey, Verdict]]:
        """Return which verdicts cells have under each implementation in each target."""
        return frozenset((k.implementation, k.target, o.verdict) for k, o in self.outcomes.items())

    def clauses_of_claims(self) -> dict[str, list[str]]:
        """Claim slug to the ids of its clauses; an empty list is a gap."""
        found: dict[str, list[str]] = {slug: [] for slug in self.claims}
        for clause in self.clauses.values():
            found.setdefault(clause.claim, []).append(clause.clause)
        return found

    def is_instead(self, id: str) -> bool:
        """Return whether a clause remedies another of its claim: it shows no more what the claim
        says.
        """
        clause = self.clauses[id]
        fixed = self.clauses.get(clause.fixes or "")
        return fixed is not None and fixed.claim == clause.claim

    def facts(self) -> dict[str, list[str]]:
        """Fact to the ids of the clauses that vary it; a clause that names none is its own."""
        found: dict[str, list[str]] = {}
        for clause in self.clauses.values():
            found.setdefault(clause.fact or clause.clause, []).append(clause.clause)
        return found

    def ran(self) -> set[str]:
        """The clauses of which any cell was run, or need not be: those that these files are of."""
        return {
            key.clause
            for key, outcome in self.outcomes.items()
            if outcome.verdict is not Verdict.NOT_RUN
        }

    def gaps(self) -> list[Claim]:
        """The claims of the catalogue that no clause checks."""
        covered = self.clauses_of_claims()
        return [claim for slug, claim in self.claims.items() if not covered[slug]]


def load(paths: Iterable[Path | str]) -> Results:
    """The merged results of `paths`, later ones over earlier ones; ResultsError names the line."""
    merge, scratch = _Merge(), Scratch()
    with paused_collector():
        for path in dict.fromkeys(Path(p) for p in paths):
            _read(path, merge, scratch)
        scratch.flush()
        return merge.results()


def _read(path: Path, merge: _Merge, scratch: Scratch) -> None:
    merge.start_file(path.name)
    for number, record in records(path, scratch, merge.note):
        try:
            merge.add(record)
        except NoValue as error:
            raise no_record(path, number, error) from None


@dataclass(slots=True)
class _Merge:
    """The state while files are read; `here` and `known` belong to the current file."""

    file: str = ""
    here: dict[str, tuple[Target, TargetKey]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    targets: dict[TargetKey, Target] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    clauses: dict[str, Clause] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)
    environments: dict[tuple[TargetKey, str], Target] = field(default_factory=dict)
    strength: dict[str, Strength] = field(default_factory=dict)
    growths: dict[tuple[str, str, str, str], Growth] = field(default_factory=dict)
    runs: dict[CellKey, tuple[Run, ...]] = field(default_factory=dict)
    cores: dict[TargetKey, Core] = field(default_factory=dict)
    of_core: Counter[TargetKey] = field(default_factory=Counter)  # cells of runs of the core tier
    beyond_core: Counter[TargetKey] = field(default_factory=Counter)  # cells of other runs
    timings: dict[TimingKey, Timing] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cells: int = 0

    def start_file(self, name: str) -> None:
        self.file, self.here, self.known = name, {}, set()

    def note(self, text: str) -> None:
        line = f"{self.file}: {text}"
        if line not in self.notes:
            self.notes.append(line)

    def add(self, record: AnyRecord) -> None:
        """Add the record of one line; NoValue names what is invalid."""
        match record:
            case Target() as target:
                self._add_target(target)
            case Claim() as claim:
                self.claims[claim.slug] = claim
            case Clause() as clause:
                self._add_clause(clause)
            case Cause() as cause:
                self.causes[cause.cause] = cause
            case Strength() as strength:
                self.strength[strength.clause] = strength
            case Growth() as growth:
                key = (growth.clause, growth.implementation, growth.jax, growth.chip)
                self.growths[key] = growth
            case Cell() as cell:
                self._add_cell(cell)
            case Timing() as timing:
                self._add_timing(timing)

    def _add_target(self, target: Target) -> None:
        self.here[target.target] = (target, target.key)
        if not target.unavailable:
            known = self.environments.get((target.key, target.run))
            if known is None or len(target.packages) > len(known.packages):
                self.environments[target.key, target.run] = target
        before = self.targets.get(target.key)
        if before is not None and before.unavailable is None:
            if target.unavailable:
                return
            for what in ("jaxlib", "numpy", "python", "machine"):
                old, new = getattr(before, what), getattr(target, what)
                if old != new:
                    self.note(f"{target.target} has {what} {new}, earlier results had {old}")
        self.targets[target.key] = target

    def _add_clause(self, clause: Clause) -> None:
        self.known.add(clause.clause)
        before = self.clauses.get(clause.clause)
        if before is not None and before.source:
            if not clause.source:
                return  # of a file that has no cell of it: shown as it was when it ran
            if (before.source, before.expected) != (clause.source, clause.expected):
                self.note(f"{clause.clause} differs from earlier results; its text here is shown")
        self.clauses[clause.clause] = with_releases(clause)

    def _target_of(self, record: Cell | Timing, kind: str) -> tuple[Target, TargetKey]:
        target = self.here.get(record.target)
        if target is None:
            raise NoValue(f"the {kind}'s target {record.target!r} has no target record before it")
        return target

    def _add_timing(self, timing: Timing) -> None:
        _, target = self._target_of(timing, "timing")
        key = TimingKey(
            timing.timing, timing.contender, target, timing.implementation, timing.topology
        )
        self.timings[key] = timing

    def _add_cell(self, cell: Cell) -> None:
        target, target_key = self._target_of(cell, "cell")
        if cell.clause not in self.known:
            raise NoValue(f"the cell's clause {cell.clause!r} has no clause record before it")
        if target.unavailable and cell.verdict not in _WITHOUT_TARGET:
            raise NoValue(
                f"the cell is {cell.verdict.value!r}, but its target {cell.target!r} is unavailable"
            )
        key = CellKey(cell.clause, target_key, cell.implementation, cell.topology)
        self.cells += 1
        if target.core is None:
            self.beyond_core[target_key] += 1
        else:
            self.cores[target_key] = target.core
            self.of_core[target_key] += 1
        run = Run(cell, self.file, target.run, self.cells, target.started)
        self.runs[key] = (*before, run) if (before := self.runs.get(key)) else (run,)

    def results(self) -> Results:
        """Return the merged results."""
        same = {key: self._identified(key) for key in self.targets}
        targets = self._sorted_targets(same)
        runs = self._runs(same)
        outcomes = {key: newest(some) for key, some in runs.items()}
        if problem := repeated(runs):
            self.notes.append(problem)
        implementations = {k.implementation for k in outcomes}
        for one in self.clauses.values():
            implementations.update(one.expected)
        everywhere, grid = _grid(self.clauses, outcomes)
        return Results(
            targets=targets,
            claims=self.claims,
            clauses=self.clauses,
            causes=self.causes,
            strength=self.strength,
            growths=tuple(self.growths.values()),
            environments=tuple(self.environments.values()),
            outcomes=outcomes,
            notes=tuple(self.notes),
            labels=labels(targets),
            names=spec_names(targets),
            implementations=tuple(sorted(implementations, key=implementation_order)),
            topologies=everywhere,
            grid=grid,
            timings=self._timings(same),
        )

    def _sorted_targets(self, same: Mapping[TargetKey, TargetKey]) -> tuple[Target, ...]:
        """Return the targets that are not another one under another key, oldest JAX first."""
        targets = (
            replace(target, core=self._core_of(key))
            for key, target in self.targets.items()
            if same[key] == key
        )

        def order(target: Target) -> tuple[Any, ...]:
            jax = target.jax or _version_in(target.target)
            return version_order(jax), target.platform or "", repr(target.key)

        return tuple(sorted(targets, key=order))

    def _runs(self, same: Mapping[TargetKey, TargetKey]) -> dict[CellKey, tuple[Run, ...]]:
        """Return the runs of each cell, all under the target that theirs is."""
        if all(key == target for key, target in same.items()):
            return self.runs
        runs: dict[CellKey, tuple[Run, ...]] = {}
        for key, some in self.runs.items():
            moved = key._replace(target=same[key.target])
            runs[moved] = (*runs.get(moved, ()), *some)
        return runs

    def _timings(self, same: Mapping[TargetKey, TargetKey]) -> dict[CellKey, tuple[Timing, ...]]:
        """Return the figures that illustrate each cell."""
        found: dict[CellKey, list[Timing]] = {}
        for place, timing in self.timings.items():
            for clause in timing.illustrates:
                here = (same[place.target], place.implementation, place.topology)
                found.setdefault(CellKey(clause, *here), []).append(timing)
        return {key: tuple(some) for key, some in found.items()}

    def _core_of(self, key: TargetKey) -> Core | None:
        """Return the core tier if no more than it is expected of a target.

        Runs of selected clauses do not make the target complete, unless they have as many cells as
        the tier leaves out.
        """
        core = self.cores.get(key, self.targets[key].core)
        if core is None or not (beyond := self.beyond_core[key]):
            return core
        return core if beyond * core.runs < self.of_core[key] * (core.of - core.runs) else None

    def _identified(self, key: TargetKey) -> TargetKey:
        """The target that `key` is: a target that one run could not get, another may have had."""
        if self.targets[key].unavailable is None or key.jax is not None:
            return key
        had = [
            other
            for other, t in self.targets.items()
            if t.unavailable is None
            and other.target == key.target
            and key.platform in (None, other.platform)
        ]
        return had[0] if len(had) == 1 else key


def _grid(
    clauses: Mapping[str, Clause], outcomes: Mapping[CellKey, Outcome]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return all topologies, and those in which each clause should have run.

    A clause that does not say where it belongs should have run everywhere. One that ran should not
    have where it does not apply, although some runs say so in a record and others in none.
    """
    found = {id: set(clause.topologies) for id, clause in clauses.items()}
    applies = {key for key, one in outcomes.items() if one.verdict is not Verdict.NOT_APPLICABLE}
    ran = {key.clause for key in applies}
    for key in outcomes:
        if key in applies or key.clause not in ran:
            found[key.clause].add(key.topology)
    everywhere = tuple(sorted(set().union(*found.values()), key=topology_order))
    grid = {
        id: tuple(sorted(found[id], key=topology_order)) if clause.topologies else everywhere
        for id, clause in clauses.items()
    }
    return everywhere, {id: some or (ANY_TOPOLOGY,) for id, some in grid.items()}


def _version_in(spec: str) -> str:
    match = re.search(r"==\s*([\w.+!-]+)", spec)
    return match[1] if match else ""
