"""Run one cell: from its id to its results record.

The pytest plugin and the benchmark share it; it does not depend on pytest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

import conformance.model.records as model
from conformance.catalogue.compiled import looks_at_compiled
from conformance.catalogue.loading import Catalogue
from conformance.judging.applicability import skip
from conformance.judging.deviations import ByClause, Deviation, DeviationError, matching
from conformance.judging.judge import Judgement, judge
from conformance.judging.rejudging import with_judgement
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import CPU
from conformance.spec.observation import parse
from conformance.spec.topology import Topology
from conformance.worker import deadlines
from harness.clusters.cluster import Case, CaseResult, ClusterDown
from harness.clusters.launchers import TargetDown
from harness.clusters.postmortem import ClusterFault
from harness.running.cells import CellId
from harness.running.pool import Pool, Run
from harness.targets.path_shortening import PathShortener
from harness.targets.target import Target, parse_spec

MOST_KEPT = 400  # runs that clauses still to come may judge as well


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested target: provisioned, or the reason why it is unavailable.

    `jax` is the installed version, if known.
    """

    spec: str
    target: Target | None
    unavailable: str | None = None
    jax: str | None = None


@dataclass
class Runner:
    """Runs cells on the pool's clusters; `facts` describes each target once it has started."""

    catalogue: Catalogue
    deviations: Sequence[Deviation]
    targets: Mapping[str, Asked]
    pool: Pool
    deadline_s: float | None = None
    repeat: int = 1
    platform: str = CPU
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _entries: ByClause = field(init=False)
    _kept: dict[Any, tuple[str, Sequence[Run]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._entries = ByClause(self.deviations)

    def run(self, cell: CellId) -> model.Cell:
        """Return the cell's results record, without `reproduce`, which only the caller knows."""
        asked = self.targets[cell.target]
        record = self._cell(cell)
        if asked.target is None:
            return record
        portable: model.Cell = PathShortener(asked.target)(record)
        return portable

    def _cell(self, cell: CellId) -> model.Cell:
        clause = self.catalogue.clauses[cell.clause]
        topology = Topology.parse(cell.topology)
        asked = self.targets[cell.target]
        if asked.target is None:
            return _record(cell, Judgement(Verdict.NOT_RUN, asked.unavailable or "no such target"))
        try:
            too_large = self.pool.unmet(asked.target, topology)
            if too_large is not None:
                return _record(cell, Judgement(Verdict.NOT_APPLICABLE, too_large))
            self._learn(asked.target, topology)
        except TargetDown as down:
            return _record(cell, Judgement(Verdict.NOT_RUN, str(down)))
        except ClusterDown as down:
            fault = down.fault
            return _record(cell, Judgement(fault.kind, fault.detail), fault=fault)
        skipped = skip(clause, cell.implementation, topology, self.facts[cell.target])
        if skipped is not None:
            return replace(_record(cell, skipped.judgement), lacks=skipped.lacks)
        return self._run(cell, clause, asked.target, topology)

    def _learn(self, target: Target, topology: Topology) -> None:
        """Record a target's facts; TargetDown if it runs another JAX than the one requested."""
        if target.spec in self.facts:
            return
        facts = self.pool.facts(target, topology)
        asked = parse_spec(target.spec)
        if asked.kind == "version" and facts["jax"] != asked.value:
            raise TargetDown(
                f"{target.python} runs jax {facts['jax']}, not the jax {asked.value} asked for"
            )
        if facts["platform"] != self.platform:
            raise TargetDown(
                f"{target.python} computes on {facts['platform']} ({facts['device_kind']}), not on "
                f"the {self.platform} asked for: its driver or plugin may be missing; try "
                f"`{target.python} -c 'import jax; print(jax.devices())'`"
            )
        self.facts[target.spec] = facts

    def _run(self, cell: CellId, clause: Clause, target: Target, topology: Topology) -> model.Cell:
        try:
            ended, runs = self._runs(cell, clause, target, topology)
        except TargetDown as down:
            return _record(cell, Judgement(Verdict.NOT_RUN, str(down)))
        records = []
        for run in runs:
            try:
                verdict = self._judge(cell, clause, topology, run.result)
            except DeviationError as error:
                verdict = Judgement(Verdict.DEVIATES, str(error))
            records.append(_record(cell, verdict, run.result, fresh=run.fresh))
        return replace(_steady(records), run_of=ended)

    def _runs(
        self, cell: CellId, clause: Clause, target: Target, topology: Topology
    ) -> tuple[str, Sequence[Run]]:
        """Return the runs that this cell judges, and the clause for which they were made.

        A run is kept while other clauses may judge it too.
        """
        key = (clause.run, cell.implementation, cell.target, cell.topology)
        shared = clause.timing is None and len(self.catalogue.runs.get(cell.clause, ())) > 1
        if shared and key in self._kept:
            return self._kept[key]
        case = Case(
            cell.clause,
            cell.implementation,
            clause.parameters,
            self.deadline_s or clause.deadline_s or deadlines.CASE_S,
            looks_at_compiled(clause),
        )
        # A repetition must not find what an earlier one left in its processes.
        fresh = clause.fresh or self.repeat > 1
        runs = [self.pool.run(target, topology, case, fresh=fresh) for _ in range(self.repeat)]
        if shared:
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (cell.clause, runs)
        return cell.clause, runs

    def _judge(
        self, cell: CellId, clause: Clause, topology: Topology, result: CaseResult
    ) -> Judgement:
        facts = self.facts[cell.target]
        entries = matching(
            self._entries[cell.clause],
            cell.clause,
            cell.implementation,
            facts["jax"],
            facts["platform"],
            cell.topology,
            facts["packages"],
        )
        return judge(
            clause,
            cell.implementation,
            topology,
            facts["jax"],
            [parse(o) for o in result.observations],
            _fault(result),
            entries,
        )


def _fault(result: CaseResult) -> Fault | None:
    if result.fault is None:
        return None
    processes = (
        Whereabouts(s.process, s.steps, s.in_step, s.signal, s.exit) for s in result.fault.processes
    )
    return Fault(result.fault.kind, result.fault.detail, result.mapped, tuple(processes))


def _steady(records: Sequence[model.Cell]) -> model.Cell:
    """Merge several runs of a cell into one record: flaky if their verdicts differ."""
    counts = Counter(r.verdict for r in records)
    if len(counts) == 1:
        return records[-1]
    bad = next(r for r in records if r.verdict not in (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION))
    text = ", ".join(f"{verdict} {k} of {len(records)}" for verdict, k in counts.most_common())
    return replace(bad, verdict=Verdict.FLAKY, reason=f"{text}; {bad.reason}")


def not_run(cell: CellId, reason: str) -> model.Cell:
    """Return the record of a cell that was not run, and why."""
    return _record(cell, Judgement(Verdict.NOT_RUN, reason))


def _record(
    cell: CellId,
    judgement: Judgement,
    result: CaseResult | None = None,
    fault: ClusterFault | None = None,
    fresh: bool = False,
) -> model.Cell:
    record = model.Cell(
        clause=cell.clause,
        implementation=cell.implementation,
        target=cell.target,
        topology=cell.topology,
        verdict=Verdict.NOT_RUN,
        reason="",
        findings=(),
        deviation=None,
        observations=list(result.observations) if result else [],
        fault=_fault_record(result.fault if result else fault, result),
        seconds=result.seconds if result else 0.0,
        probe_seconds=result.probe_seconds if result else 0.0,
        cpu_seconds=result.cpu_seconds if result else 0.0,
        fresh=fresh,
        reproduce="",
    )
    return with_judgement(record, judgement)


def _fault_record(fault: ClusterFault | None, result: CaseResult | None) -> model.Fault | None:
    if fault is None:
        return None
    record = msgspec.convert(fault, model.Fault, from_attributes=True)
    return replace(record, mapped=tuple(result.mapped) if result else ())
