"""A deviation entry of a few patterns, and a cluster that hung, for tests of the judge."""

from __future__ import annotations

import datetime
from typing import Any

from observations import (
    FIRST,
    SECOND,
)

from conformance.judging.deviations import Deviation, seen_patterns
from conformance.model.verdicts import Verdict
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import IMPLEMENTATIONS

HUNG_TEXT = "no answer within 1 s from process 1; process 1 is in File probe.py"
STUCK = tuple(Whereabouts(process, (FIRST,), SECOND) for process in range(2))
HUNG = Fault(Verdict.HUNG, HUNG_TEXT, ("new pmap",), STUCK)


def entry(**seen: Any) -> Deviation:
    """An entry that says what is seen: `saw`, `steps` or `fault`, as in TOML."""
    return Deviation(
        clause=("errors.*",),
        implementation=IMPLEMENTATIONS,
        **seen_patterns(seen),
        why="the check was removed",
        link="https://example.org/issues/1",
        kind="implementation",
        review=datetime.date(2027, 1, 31),
    )
