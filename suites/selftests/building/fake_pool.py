"""A pool without processes: a runner on it makes real results records out of made observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace
from records import JAX, Record

from conformance.catalogue.loading import Catalogue
from conformance.judging.deviations import Deviation
from conformance.model.records import Cell
from conformance.spec.clause import Clause
from conformance.spec.names import IMPLEMENTATIONS
from conformance.spec.topology import Topology
from harness.clusters.cluster import Case, CaseResult
from harness.clusters.postmortem import ClusterFault
from harness.plugin.message import reproduce
from harness.running.cells import CellId
from harness.running.pool import Pool, Run
from harness.running.runner import Asked, Runner
from harness.targets.target import Target

SPEC = "jax==0.9.0"
TARGET = Target(SPEC, Path("/targets/jax-0.9.0/bin/python"))
FACTS: Mapping[str, Any] = {
    "jax": JAX,
    "jaxlib": JAX,
    "numpy": "2.4.6",
    "python": "3.11.7",
    "platform": "cpu",
    "device_kind": "cpu",
    "machine": "x86_64",
    "implementations": list(IMPLEMENTATIONS),
    "packages": {},
    "programs": [],
}


class FakePool:
    """Answers each case with the next of `results`, in place of a cluster."""

    def __init__(
        self,
        *results: Sequence[Record] | ClusterFault,
        facts: Mapping[str, Any] = FACTS,
        down: Exception | None = None,
        unmet_by: str | None = None,
    ) -> None:
        self.unmet_by = unmet_by
        self.cases: list[tuple[Case, bool]] = []
        self._results = list(results)
        self._facts = facts
        self._down = down

    def facts(self, target: Target, topology: Topology) -> dict[str, Any]:
        if self._down is not None:
            raise self._down
        return dict(self._facts)

    def unmet(self, target: Target, topology: Topology) -> str | None:
        return self.unmet_by

    def run(self, target: Target, topology: Topology, case: Case, *, fresh: bool = False) -> Run:
        self.cases.append((case, fresh))
        result = self._results.pop(0)
        fault = result if isinstance(result, ClusterFault) else None
        seen = () if isinstance(result, ClusterFault) else tuple(result)
        return Run(CaseResult(seen, fault, 0.5, 0.25), dict(self._facts), fresh)


def runner_on(
    pool: FakePool,
    *clauses: Clause,
    target: Target | None = TARGET,
    unavailable: str | None = None,
    deviations: Sequence[Deviation] = (),
    repeat: int = 1,
) -> Runner:
    """A runner of these clauses with one target."""
    return Runner(
        Catalogue({one.id: one for one in clauses}),
        deviations,
        {SPEC: Asked(SPEC, target, unavailable)},
        cast(Pool, pool),
        repeat=repeat,
    )


def cell_of(clause: Clause, implementation: str = "new_pmap", topology: str = "2x2") -> CellId:
    return CellId(clause.id, implementation, topology, SPEC)


def nodeid_of(cell: CellId) -> str:
    return f"suites/test_errors.py::test_errors[{cell}]"


def record_of(runner: Runner, cell: CellId) -> Cell:
    """The record of a cell as the plugin hands it to the recorder."""
    record = runner.run(cell)
    clause = runner.catalogue.clauses[cell.clause]
    return replace(record, reproduce=reproduce(nodeid_of(cell), cell, clause))
