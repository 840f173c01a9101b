"""What a failing cell says in the terminal: everything needed to believe it and to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue.claims import Claims
from conformance.catalogue.clause import Clause
from conformance.judging.observation import Observation, parse
from harness.running.cells import CellId

MOST_STACK_LINES = 12
MOST_LOG_LINES = 12


def failure(cell: CellId, clause: Clause, claims: Claims, record: Mapping[str, Any]) -> str:
    """The message of one cell, from its results record."""
    claim = claims.claims[clause.claim]
    document = claims.documents[claim.document].title
    heading = f", “{claim.heading}”" if claim.heading else ""
    lines = [
        f"{record['verdict'].upper()}: {clause.id} under {cell.implementation}, {cell.target}, "
        f"{cell.topology}",
        f"  statement  {claim.statement}",
        f"  source     {document}{heading}",
        f"  clause     {clause.title}",
        f"  expected   {clause.expect[cell.implementation].text}",
        f"  reason     {record['reason']}",
        *_failed(record["findings"]),
        *_observed([parse(o) for o in record["observations"]]),
        *_fault(record["fault"]),
        f"  reproduce  {record['reproduce']}",
    ]
    return "\n".join(lines)


def reproduce(nodeid: str, cell: CellId, clause: Clause, platform: str = "cpu") -> str:
    """The one line that runs this cell alone."""
    words = ["pytest", nodeid, *(("-m", "benchmark") if clause.timing else ())]
    if cell.target != "current":
        words += ["--target", cell.target]
        # In this environment they are there or not; a target is given them.
        words += [word for package in clause.requires for word in ("--extra", package)]
    if platform != "cpu":
        words += ["--platform", platform]
    if cell.topology not in clause.topologies:
        words += ["--topology", cell.topology]
    return shlex.join(words)


def odd_first(observations: Iterable[Observation]) -> list[tuple[list[int], Observation]]:
    """Processes that saw the same together, the smallest group first."""
    groups: dict[str, tuple[list[int], Observation]] = {}
    for one in observations:
        # Values differ between processes by design; what kind of thing happened should not.
        key = "|".join(
            f"{s.name}: {s.raised}" if s.raised else f"{s.name}: returned" for s in one.steps
        )
        groups.setdefault(key, ([], one))[0].append(one.process)
    return sorted(groups.values(), key=lambda g: len(g[0]))


def _failed(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    failed = [f for f in findings if not f["holds"]]
    return [
        f"  {'failed' if at == 0 else '':<10} process {f['process']}, {f['step']}: expected "
        f"{f['expected']}; saw {f['saw']}"
        for at, f in enumerate(failed[:6])
    ]


def _observed(observations: Sequence[Observation]) -> list[str]:
    lines: list[str] = []
    for processes, one in odd_first(observations):
        who = "process" if len(processes) == 1 else "processes"
        for at, step in enumerate(one.steps):
            name = f"{who} {', '.join(map(str, processes))}" if at == 0 else ""
            lines.append(f"  {'observed' if not lines else '':<10} {name:<14} {step.name}: {step}")
    return lines


def _fault(fault: Mapping[str, Any] | None) -> list[str]:
    lines: list[str] = []
    for state in fault["processes"] if fault else ():
        lines.append(f"  process {state['process']}  {state['state']}")
        lines += [f"      {line}" for line in state["stack"].splitlines()[:MOST_STACK_LINES]]
        lines += [f"    | {line}" for line in state["log"].splitlines()[-MOST_LOG_LINES:]]
    return lines
