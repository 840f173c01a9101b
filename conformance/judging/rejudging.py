"""Judge recorded cells by today's clauses and deviation entries, without running them again.

A results file contains every process's observation, so an old run can be judged by today's
catalogue. A cell that cannot be judged so is reported with the reason, and must be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

import conformance.model.records as model
from conformance.judging.applicability import skipped_everywhere
from conformance.judging.deviations import ByClause, Deviation, DeviationError, matching
from conformance.judging.judge import WRAPPERS, Judgement, judge
from conformance.model.codec import NoValue
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Clause
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.observation import Observation, parse
from conformance.spec.topology import Topology


class CannotJudge(ValueError):
    """A recorded cell that today's catalogue cannot judge; the message gives the reason.

    It names no cell: many cells share a reason, and are counted by it.
    """


class Rejudging:
    """Judges recorded cells."""

    def __init__(self, clauses: Mapping[str, Clause], entries: Iterable[Deviation]) -> None:
        self._clauses = clauses
        self._entries = ByClause(entries)

    def __call__(self, cell: model.Cell, target: model.Target) -> model.Cell:
        """Return the record with today's verdict, reason, findings and entry; CannotJudge says why
        not.

        `not run` and `flaky` are kept, because no single observation decides them.
        """
        verdict, implementation = cell.verdict, cell.implementation
        clause = self._clauses.get(cell.clause)
        if clause is None:
            raise CannotJudge("its clause no longer exists")
        if implementation not in clause.expect:
            raise CannotJudge("its clause no longer runs under that implementation")
        if verdict in (Verdict.NOT_RUN, Verdict.FLAKY):
            return cell
        topology = Topology.parse(cell.topology)
        excused = skipped_everywhere(clause, implementation, topology, target.platform or names.CPU)
        if excused is not None:
            return replace(with_judgement(cell, excused), observations=(), fault=None)
        if verdict == Verdict.NOT_APPLICABLE:
            raise CannotJudge("not applicable then")
        if verdict == Verdict.REMOVED:
            return cell
        return with_judgement(cell, self._judged(clause, topology, cell, target))

    def _judged(
        self, clause: Clause, topology: Topology, cell: model.Cell, target: model.Target
    ) -> Judgement:
        implementation, jax = cell.implementation, target.jax or ""
        where = (jax, target.platform or "", cell.topology, target.packages)
        try:
            entries = matching(self._entries[clause.id], clause.id, implementation, *where)
            seen, fault = observations(cell), fault_of(cell)
            return judge(clause, implementation, topology, jax, seen, fault, entries)
        except DeviationError as error:
            return Judgement(Verdict.DEVIATES, str(error))


def with_judgement(cell: model.Cell, judgement: Judgement) -> model.Cell:
    """Return the record of a cell with another judgement."""
    return replace(
        cell,
        verdict=Verdict(judgement.verdict),
        reason=judgement.reason,
        findings=[_finding(one) for one in judgement.findings],
        deviation=judgement.deviation and _entry(judgement.deviation),
    )


def _finding(finding: Finding) -> model.Finding:
    if finding.holds:  # how it might have failed is of no use to a reader
        return model.Finding(
            finding.step,
            finding.process,
            True,
            finding.expected,
            finding.saw,
            finding.code,
            figure=finding.figure,
        )
    return msgspec.convert(finding, model.Finding, from_attributes=True)


def _entry(entry: Deviation) -> model.Deviation:
    return model.Deviation(
        observed=entry.seen,
        why=entry.why,
        link=entry.link,
        kind=entry.kind,
        review=entry.review.isoformat(),
        jax=entry.versions,
        cause=entry.cause,
    )


def observations(cell: model.Cell) -> tuple[Observation, ...]:
    """Return the observations of a recorded cell; CannotJudge if they are invalid."""
    try:
        return tuple(parse(one) for one in cell.observations)
    except (KeyError, TypeError) as error:
        raise CannotJudge(
            f"recorded by another version of this program: an observation without {error}"
        ) from error
    except NoValue as error:
        raise CannotJudge(str(error)) from error


def fault_of(cell: model.Cell) -> Fault | None:
    """Return how a recorded cell's cluster crashed or hung; None if it did not."""
    fault = cell.fault
    if fault is None:
        return None
    mapped = fault.mapped
    if mapped is None:
        # A record that does not carry what was mapped passed, so that it was what it should be.
        mapped = WRAPPERS.get(cell.implementation, ())[:1]
    there = (
        Whereabouts(one.process, one.steps, one.in_step, one.signal, one.exit)
        for one in fault.processes
    )
    return Fault(fault.kind, fault.detail, mapped, tuple(there))
