"""Judges fabricated observations with the real clauses and the real deviation entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from judged import received
from real import PACKAGES, catalogue, entries
from records import WITNESS, Record, observation

from conformance.judging.deviations import matching
from conformance.judging.judge import Judgement, judge
from conformance.model.verdicts import Verdict
from conformance.spec.codes import Code
from conformance.spec.expectation import Fault
from conformance.spec.names import SHARD_MAP
from conformance.spec.topology import Place, Topology

NEWEST = "0.12.0.1"
EXCUSED = (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION)

# What each process records: the same, each step by its place, or all by its place.
Steps = Sequence[Record | Callable[[Place], Record]] | Callable[[Place], Sequence[Record]]


def judgement_of(
    id: str,
    implementation: str,
    topology: Topology,
    steps: Steps = (),
    *,
    jax: str = NEWEST,
    fault: Fault | None = None,
    **observed: Any,
) -> Judgement:
    """Return the judgement of a cell whose processes recorded these steps, or met this fault.

    `observed` replaces facts of each observation. Entries about a library are those of the newest
    JAX's own.
    """
    packages = PACKAGES if jax == NEWEST else None
    known = matching(entries(), id, implementation, jax, "cpu", str(topology), packages)
    ran = implementation if implementation in WITNESS else SHARD_MAP  # whose witness is left
    seen = []
    for process in range(0 if fault else topology.processes):
        place = Place(topology, process)
        own = steps(place) if callable(steps) else [s(place) if callable(s) else s for s in steps]
        facts = {"process": process, "implementation": ran, "topology": topology, "jax": jax}
        seen.append(received(observation(*own, **facts | observed)))
    return judge(catalogue().clauses[id], implementation, topology, jax, seen, fault, known)


def verdict_of(*cell: Any, **other: Any) -> str:
    """Return the verdict alone; arguments as `judgement_of`."""
    return judgement_of(*cell, **other).verdict


class Cell(NamedTuple):
    """A fabricated cell, and the verdict that is right for it; None is any that is red."""

    clause: str
    implementation: str
    topology: Topology
    steps: Steps
    verdict: str | None = None


def check(cell: Cell) -> None:
    """Assert the verdict of a cell, and that a red one is red for a value and no missing step."""
    found = judgement_of(*cell[:4])
    if cell.verdict is not None:
        assert found.verdict == cell.verdict, found.reason
        return
    assert found.verdict not in EXCUSED, found.reason
    assert Code.ENDING not in {one.code for one in found.findings if not one.holds}, found.reason
