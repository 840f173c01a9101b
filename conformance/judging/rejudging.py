"""Recorded cells, judged by the clauses and deviation entries of today, with nothing run again.

A results file carries what every process observed, so a verdict of last month can be had from the
catalogue of this morning. What cannot be judged so says why: then the cell is to be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.catalogue import names
from conformance.catalogue.clause import Clause
from conformance.catalogue.topology import Topology
from conformance.judging.deviations import Deviation, DeviationError, matching
from conformance.judging.expectation import Fault, NotApplicable, Whereabouts
from conformance.judging.judge import WRAPPERS, Judgement, judge, judgement_record
from conformance.judging.observation import Observation, parse

Record = Mapping[str, Any]


class CannotJudge(ValueError):
    """A recorded cell of which today's catalogue can say nothing; the message says why, in short.

    It names no cell: many cells share a reason, and are counted by it.
    """


class Rejudging:
    """Judges recorded cells; the entries are sorted by clause once, as a run has thousands."""

    def __init__(self, clauses: Mapping[str, Clause], entries: Iterable[Deviation]) -> None:
        self._clauses = clauses
        self._entries = tuple(entries)
        self._of: dict[str, tuple[Deviation, ...]] = {}

    def __call__(self, cell: Record, target: Record) -> dict[str, Any]:
        """The record with today's verdict, reason, findings and entry; CannotJudge says why not.

        What was not run or not steady stays so: there is no observation that speaks for it.
        """
        verdict, implementation = cell["verdict"], cell["implementation"]
        clause = self._clauses.get(cell["clause"])
        if clause is None:
            raise CannotJudge("of a clause that is no more")
        if implementation not in clause.expect:
            raise CannotJudge("of an implementation of which its clause now expects nothing")
        if verdict in (names.NOT_RUN, names.FLAKY):
            return dict(cell)
        topology = Topology.parse(cell["topology"])
        excused = not_applicable(clause, implementation, topology)
        if excused is not None:
            return {**cell, **judgement_record(excused), "observations": [], "fault": None}
        if verdict == names.NOT_APPLICABLE:
            raise CannotJudge("not applicable then")
        if verdict == names.REMOVED:
            return dict(cell)
        return {**cell, **judgement_record(self._judged(clause, topology, cell, target))}

    def _judged(
        self, clause: Clause, topology: Topology, cell: Record, target: Record
    ) -> Judgement:
        if clause.id not in self._of:
            self._of[clause.id] = tuple(e for e in self._entries if e.names(clause.id))
        implementation, jax = cell["implementation"], target["jax"]
        where = (jax, target["platform"], cell["topology"], target.get("packages", {}))
        try:
            entries = matching(self._of[clause.id], clause.id, implementation, *where)
            seen, fault = observations(cell), fault_of(cell)
            return judge(clause, implementation, topology, jax, seen, fault, entries)
        except DeviationError as error:
            return Judgement(names.DEVIATES, str(error))


def not_applicable(clause: Clause, implementation: str, topology: Topology) -> Judgement | None:
    """Why a clause means nothing in a cell, whatever the target, if that is so."""
    expectation = clause.expect[implementation]
    if isinstance(expectation, NotApplicable):
        return Judgement(names.NOT_APPLICABLE, expectation.reason)
    unmet = clause.needs.unmet(topology) or clause.elsewhere(topology)
    return Judgement(names.NOT_APPLICABLE, unmet) if unmet is not None else None


def observations(cell: Record) -> tuple[Observation, ...]:
    """What the processes of a recorded cell reported; CannotJudge where it is of another form."""
    try:
        return tuple(parse(one) for one in cell["observations"])
    except (KeyError, TypeError) as error:
        raise CannotJudge(
            f"recorded by another version of this program: an observation without {error}"
        ) from error


def fault_of(cell: Record) -> Fault | None:
    """How a recorded cell's cluster crashed or hung, if it did."""
    fault = cell["fault"]
    if fault is None:
        return None
    # A record that does not carry what was mapped passed, so that it was what it should be.
    mapped = fault.get("mapped", WRAPPERS.get(cell["implementation"], ())[:1])
    there = (
        Whereabouts(
            one["process"],
            tuple(one.get("steps", ())),
            one.get("in_step", ""),
            one["signal"],
            one["exit"],
        )
        for one in fault["processes"]
    )
    return Fault(fault["kind"], fault["detail"], tuple(mapped), tuple(there))
