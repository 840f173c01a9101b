"""Compare a run of a user's function with another, field by field, and explain the differences.

A run is plain JSON (`harness.usercode.observing.Observed.record`). The fields and their words are
those by which implementations are compared (`reports.analysis.comparing.fields`); costs are added
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.analysis.comparing.fields import (
    ABSENT,
    COLLECTIVES,
    FAULT,
    OUTCOME,
    ROUNDED,
    VALUES,
    Difference,
    compare_cells,
)
from reports.analysis.usercode.costs import added_collectives, costs
from reports.analysis.usercode.runs import (
    CALLS,
    Found,
    Json,
    cell_of,
    other_kinds,
    place_of,
    steps_named,
)
from reports.analysis.usercode.values import describe_values


@dataclass(frozen=True, slots=True)
class Compared:
    """A run, the run that it was compared with, and the differences.

    `missing` is why they are not compared; `same` the number of equal fields.
    """

    baseline: Json
    run: Json
    found: tuple[Found, ...] = ()
    same: int = 0
    missing: str = ""

    @property
    def differs(self) -> bool:
        """Return whether anything differs that matters."""
        return any(one.matters for one in self.found)

    def record(self) -> dict[str, Any]:
        """Return it as JSON, without the observations."""
        return {
            "baseline": place_of(self.baseline),
            "run": place_of(self.run),
            "missing": self.missing or None,
            "same_fields": self.same,
            "differences": [one.record() for one in self.found],
        }


def compare(baseline: Json, run: Json) -> Compared:
    """Compare a run with the baseline; nothing is explained yet."""
    for one in (baseline, run):
        if one["missing"]:
            return Compared(baseline, run, missing=str(one["missing"]))
    for one in (baseline, run):
        if other := other_kinds(one):
            why = f"the code selects {', '.join(other)} by itself, and not {one['implementation']}"
            return Compared(baseline, run, missing=why)
    cells = compare_cells(cell_of(baseline), cell_of(run))
    raised = any(one.field == OUTCOME and one.step in CALLS for one in cells.differences)
    found = [
        _found(one, baseline, run)
        for one in cells.differences
        # Nothing was done with the result of a call that raised.
        if not (raised and one.field == OUTCOME and ABSENT in (one.old, one.new))
    ]
    same = sum(cells.same.values())
    if not any(one.field == FAULT for one in found):
        found += costs(baseline, run)
    return Compared(baseline, run, tuple(found), same)


def _found(difference: Difference, baseline: Json, run: Json) -> Found:
    seen, matters = difference.seen, True
    if difference.field == FAULT:
        seen = " → ".join(
            "none" if r["fault"] is None else r["fault"]["detail"] for r in (baseline, run)
        )
    elif difference.field == COLLECTIVES:
        added = added_collectives(baseline, run, difference.step)
        seen = "; ".join(f"new: {c}" for c in added) or seen
    elif difference.field == VALUES:
        matters = difference.new != ROUNDED
        seen = (
            describe_values(
                steps_named(baseline, difference.step), steps_named(run, difference.step)
            )
            or seen
        )
    return Found(difference.step, difference.field, difference.old, difference.new, seen, matters)
