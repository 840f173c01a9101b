"""Policies that make a command exit with 1, each a count.

A pipeline names those that it does not accept. What is counted depends on the command: the cells of
a run, the cells that changed between two, or the known issues of an upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import Comparison, Kind
from reports.analysis.effects.changed import Group, Upgrade
from reports.analysis.fail_on import REGRESSIONS
from reports.store.alike import failed
from reports.store.codes import OF_VALUES
from reports.store.older import code_of
from reports.store.outcomes import Outcome
from reports.store.results import Results

RED = (Verdict.CRASHED, Verdict.HUNG, Verdict.DEVIATES, Verdict.FLAKY)


def _verdict(*some: Verdict) -> Callable[[Outcome], bool]:
    return lambda outcome: outcome.verdict in some


def _fault(kind: str) -> Callable[[Outcome], bool]:
    return lambda outcome: any(
        run.cell.fault is not None and run.cell.fault.kind == kind for run in outcome.runs
    )


def _wrong_numbers(outcome: Outcome) -> bool:
    return any(code_of(one) in OF_VALUES for run in outcome.runs for one in failed(run.cell))


_OF_CELLS: Mapping[str, Callable[[Outcome], bool]] = {
    "red": _verdict(*RED),
    "deviations": _verdict(Verdict.DEVIATES, Verdict.KNOWN_DEVIATION),
    "crashes": _fault("crashed"),
    "hangs": _fault("hung"),
    "wrong-numbers": _wrong_numbers,
    "flaky": _verdict(Verdict.FLAKY),
    "not-run": _verdict(Verdict.NOT_RUN),
}
_OF_CAUSES: Mapping[str, tuple[Group, ...]] = {
    "crashes": (Group.DIES,),
    "wrong-numbers": (Group.WRONG_NUMBERS,),
    "raises": (Group.RAISES,),
    "other-errors": (Group.OTHER_ERROR,),
    "moves-more": (Group.MOVES_MORE,),
    "memory": (Group.MEMORY,),
    "elsewhere": (Group.LIES, Group.OUTPUT),
    "warnings": (Group.WARNS,),
    "fixes": (Group.FIX_FAILS,),
    "anything": tuple(group for group in Group if group is not Group.REPAIRED),
}


def of_run(results: Results, policies: Iterable[str]) -> dict[str, int]:
    """Return for each policy how many cells of a run violate it; the time lane's count too."""
    outcomes = [outcome for _, outcome in results.cells()]
    outcomes += measurements(results)
    return {one: sum(map(_OF_CELLS[one], outcomes)) for one in policies}


def measurements(results: Results) -> list[Outcome]:
    """Return how the time lane's measurements were judged, as far as that is recorded."""
    found = {id(one): one for some in results.timings.values() for one in some}
    return [Outcome(t.verdict, t.failed or "") for t in found.values() if t.verdict is not None]


def of_changes(found: Comparison, policies: Iterable[str]) -> dict[str, int]:
    """Return for each policy how many of the changed cells violate it, as they are in the
    new run.
    """
    changed = [change.new for group in found.groups for change in group.changes]
    return {
        one: found.cells(Kind.REGRESSION)
        if one == REGRESSIONS
        else sum(map(_OF_CELLS[one], changed))
        for one in policies
    }


def of_upgrade(found: Upgrade, policies: Iterable[str]) -> dict[str, int]:
    """Return for each policy how many known issues of an upgrade violate it."""
    return {one: sum(len(found.entries_in(group)) for group in _OF_CAUSES[one]) for one in policies}
