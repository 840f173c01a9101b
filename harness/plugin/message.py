"""The message of a failing cell in the terminal: the evidence, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from conformance.catalogue.claims import Claims
from conformance.model import records as model
from conformance.spec.clause import Clause
from conformance.spec.names import CPU
from conformance.spec.observation import Observation, parse, shortened
from harness.running.cells import CellId

INSTALLED = "harness/suite/"  # how node ids begin of what an installed wheel has
MOST_FAILED = 6  # comparisons that are shown
MOST_FRAMES = 6  # of an exception that a probe raised, the innermost
MOST_STACK_LINES = 12
MOST_LOG_LINES = 12


def failure(
    cell: CellId,
    clause: Clause,
    claims: Claims,
    record: model.Cell,
    entries: Sequence[str] = (),
) -> str:
    """The message of one cell, from its results record; `entries` describes deviation entries of
    its clause that are about other cells.
    """
    claim = claims.claims[clause.claim]
    document = claims.documents[claim.document].title
    observations = [parse(one) for one in record.observations]
    heading = f", “{claim.heading}”" if claim.heading else ""
    lines = [
        f"{record.verdict.upper()}: {clause.id} under {cell.implementation}, {cell.target}, "
        f"{cell.topology}",
        f"  statement  {claim.statement}",
        f"  source     {document}{heading}",
        f"  clause     {clause.title}",
        f"  file       {':'.join(map(str, clause.where))}",
        *(f"  row        {name} = {key!r}" for name, key in clause.parameters.items()),
        f"  expected   {clause.expect[cell.implementation].text}",
        f"  reason     {record.reason}",
        *(f"  entry      {one}" for one in entries[:MOST_FAILED]),
        *_failed(record.findings),
        *_observed(observations),
        *_raised(observations),
        *_fault(record.fault),
        f"  reproduce  {record.reproduce}",
    ]
    return "\n".join(lines)


def reproduce(nodeid: str, cell: CellId, clause: Clause, platform: str = CPU) -> str:
    """Return the one line that runs this cell alone.

    A cell collected by `pmap-conformance run` is repeated by the same command, which needs no
    folder of tests.
    """
    if nodeid.startswith(INSTALLED):
        return _run_again(cell, clause, platform)
    words = ["pytest", nodeid, *(("-m", "benchmark") if clause.timing else ())]
    if cell.target != "current":
        words += ["--target", cell.target]
        # In this environment they are there or not; a target is given them.
        words += [word for package in clause.requires for word in ("--extra", package)]
    if platform != CPU:
        words += ["--platform", platform]
    if cell.topology not in clause.topologies:
        words += ["--topology", cell.topology]
    return shlex.join(words)


def _run_again(cell: CellId, clause: Clause, platform: str) -> str:
    words = ["pmap-conformance", "run", "--clause", clause.id, "--target", cell.target]
    words += ["--implementation", cell.implementation, "--topology", cell.topology]
    if cell.target != "current":
        words += [word for package in clause.requires for word in ("--extra", package)]
    words += ["--section", "timing"] if clause.timing else []
    words += ["--", "--platform", platform] if platform != CPU else []
    return shlex.join(words)


def odd_first(observations: Iterable[Observation]) -> list[tuple[list[int], Observation]]:
    """Group processes by identical observations, the smallest group first."""
    groups: dict[str, tuple[list[int], Observation]] = {}
    for one in observations:
        # Values differ between processes by design; what kind of thing happened should not.
        key = "|".join(
            f"{s.name}: {s.raised}" if s.raised else f"{s.name}: returned" for s in one.steps
        )
        groups.setdefault(key, ([], one))[0].append(one.process)
    return sorted(groups.values(), key=lambda g: len(g[0]))


def _failed(findings: Sequence[model.Finding]) -> list[str]:
    """Return the failed expectations, identical ones of several processes and steps joined."""
    same: dict[tuple[str | None, str, str], list[str]] = {}
    for one in findings:
        if not one.holds:
            processes = same.setdefault((one.step, one.expected, one.saw), [])
            processes.append(str(one.process))
    lines: list[str] = []
    expected_before = None
    for (step, expected, saw), processes in list(same.items())[:MOST_FAILED]:
        wanted = "as above" if expected == expected_before else expected
        expected_before = expected
        lines.append(
            f"  {'' if lines else 'failed':<10} {_who(processes)}, {step}: expected {wanted}; "
            f"saw {shortened(saw)}"
        )
    if len(same) > MOST_FAILED:
        lines.append(f"  {'':<10} and {len(same) - MOST_FAILED} more")
    return lines


def _observed(observations: Sequence[Observation]) -> list[str]:
    """Return the steps as observed, joining processes with equal observations, fewest first."""
    lines: list[str] = []
    for together, one in odd_first(observations):
        for at, step in enumerate(one.steps):
            texts: dict[str, list[str]] = {}
            for other in observations:
                if other.process in together:
                    texts.setdefault(str(other.steps[at]), []).append(str(other.process))
            for text, processes in sorted(texts.items(), key=lambda pair: len(pair[1])):
                lines.append(
                    f"  {'' if lines else 'observed':<10} {_who(processes):<14} {step.name}: "
                    f"{shortened(text)}"
                )
    return lines


def _raised(observations: Sequence[Observation]) -> list[str]:
    """Return each exception's whole text and innermost frames, once, to show errors in a probe."""
    lines: list[str] = []
    reported = set()
    for one in observations:
        for step in one.steps:
            raised = step.raised
            if raised is None or (raised.type, raised.message) in reported:
                continue
            reported.add((raised.type, raised.message))
            lines.append(f"  {'raised':<10} {step.name}: {raised.type}: {raised.message}")
            lines += [f"      at {frame}" for frame in raised.frames[-MOST_FRAMES:]]
    return lines


def _who(processes: Sequence[str]) -> str:
    return f"process{'' if len(processes) == 1 else 'es'} {', '.join(processes)}"


def _fault(fault: model.Fault | None) -> list[str]:
    lines: list[str] = []
    for state in fault.processes if fault else ():
        lines.append(f"  process {state.process}  {state.state}")
        lines += [f"      {line}" for line in (state.stack or "").splitlines()[:MOST_STACK_LINES]]
        lines += [f"    | {line}" for line in (state.log or "").splitlines()[-MOST_LOG_LINES:]]
    return lines
