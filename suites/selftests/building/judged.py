"""Builds what the judge gets beside recorded steps: clauses, faults and deviation entries.

An observation is read by `spec.observation.parse`, so what is judged is what arrives.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

from records import FIRST, SECOND, Record

from conformance.judging.deviations import Deviation, seen_patterns
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import IMPLEMENTATIONS
from conformance.spec.observation import Observation, parse

HUNG_TEXT = "no answer within 1 s from process 1; process 1 is in File probe.py"
STUCK = tuple(Whereabouts(process, (FIRST,), SECOND) for process in range(2))
HUNG = Fault(Verdict.HUNG, HUNG_TEXT, ("new pmap",), STUCK)


def received(record: Record) -> Observation:
    """Return the observation after its way through the connection."""
    return parse(json.loads(json.dumps(record, allow_nan=False)))


def clause_of(
    expect: Expectation | Mapping[str, Expectation], id: str = "errors.sample", **other: Any
) -> Clause:
    """Return a clause that expects the same of every implementation, or what the mapping says."""
    if not isinstance(expect, Mapping):
        expect = dict.fromkeys(IMPLEMENTATIONS, expect)
    claim = other.pop("claim", "migrate-pmap.incompatible-devices")
    return Clause(id=id, claim=claim, probe=sample_probe, expect=expect, **other)


def sample_probe(impl: Any, cluster: Any) -> None:
    """The rows are doubled."""


def crashed(step: str, *mapped: str, signal: str = "SIGSEGV") -> Fault:
    """Return that process 0 was killed in this step, if any, after these maps were made."""
    where = f"in step “{step}”" if step else "before any step"
    detail = f"process 0 was killed by {signal} {where}"
    return Fault(Verdict.CRASHED, detail, mapped, (Whereabouts(0, (), step, signal),))


def hung(step: str, *mapped: str) -> Fault:
    """Return that process 0 did not come back from this step, after these maps were made."""
    detail = f"no answer within 6 s from process 0; in step “{step}”"
    return Fault(Verdict.HUNG, detail, mapped, (Whereabouts(0, (), step),))


def entry(**seen: Any) -> Deviation:
    """Return an entry that says what is seen: `saw`, `steps` or `fault`, as in TOML."""
    return Deviation(
        clause=("errors.*",),
        implementation=IMPLEMENTATIONS,
        **seen_patterns(seen),
        why="the check was removed",
        link="https://example.org/issues/1",
        kind="implementation",
        review=datetime.date(2027, 1, 31),
    )
